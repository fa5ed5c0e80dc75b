"""OpenCL on a real device: correctness, latency beside PyTorch, roofs, layers."""
