// Starts a WASI program: node wasm_run.mjs MODULE COUNT FOLDER... ARGUMENTS...
// The program reads and writes in the COUNT folders and nowhere else.
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [module, count, ...rest] = process.argv.slice(2);
const folders = rest.slice(0, Number(count));
const wasi = new WASI({
  version: "preview1",
  args: [module, ...rest.slice(Number(count))],
  preopens: Object.fromEntries(folders.map((folder) => [folder, folder])),
  returnOnExit: true,
});
const { instance } = await WebAssembly.instantiate(await readFile(module), wasi.getImportObject());
process.exitCode = wasi.start(instance);
