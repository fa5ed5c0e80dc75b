"""Our runtime as WebAssembly beside onnxruntime-web, in headless Chromium."""
