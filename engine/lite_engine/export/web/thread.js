// A thread of the runtime: lite.js starts it with the same module on the same memory, and it stays in there.
import { imports } from "./lite.js";

onmessage = async ({ data: { module, memory, thread, stack, local, timeOrigin } }) => {
  const clock = () => performance.timeOrigin - timeOrigin + performance.now();
  const { exports } = await WebAssembly.instantiate(module, imports(() => memory, clock, memory));
  exports.__stack_pointer.value = stack;
  exports.__wasm_init_tls(local);
  postMessage("started");
  exports.lite_wasm_serve(thread);
};
