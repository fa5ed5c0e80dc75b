"""lite.wasm beside onnxruntime-web in headless Chromium, interleaved, as ratios.

    mkdir -p build/web && cp benchmarks/web/package.json build/web     # once: the peer
    npm install --no-package-lock --prefix build/web
    python -m benchmarks.web [--nets mobilenet_v2,…] [--precision fp32|int8] [--seconds 3]
                             [--threads 1] [--json FILE] [--files DIR]

The networks are those of `benchmarks`, with the same seeded inputs, and in int8 the same QDQ file
for both. A peer counts when its output is ours. The server isolates the pages, which then may have
threads and whose clocks have steps of 5 µs.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine import optimize, settings
from lite_engine.export import export_model
from lite_engine.profile.environment import environment

from benchmarks import table
from benchmarks.models import Files
from benchmarks.schedule import SAME, distance_of, run_in_turn
from tests.chromium import open_chromium

NETS = ("mobilenet_v2", "mobilenet_v3_small", "squeezenet", "resnet18", "ocr_recogniser")
PEER = "onnxruntime-web"
ENGINES = ["lite", PEER]
HERE = Path(__file__).parent
PACKAGE = Path("build/web/node_modules") / PEER
DTYPES = {"f32": np.float32, "i64": np.int64}
ISOLATED = {
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp",
}  # fmt: skip


class Page:
    """One engine in a page, with the interface of benchmarks.schedule.Worker."""

    def __init__(self, browser: Any, origin: str) -> None:
        self.page = browser.new_context().new_page()  # a context: a process of its own
        self.page.goto(origin)
        self.page.wait_for_function("globalThis.bench")

    def ask(self, **command: Any) -> dict[str, Any]:
        """The reply; an "error" key when the engine failed."""
        from playwright.sync_api import Error

        call = "load" if "model" in command else "burst"
        try:
            return dict(self.page.evaluate(f"(command) => bench.{call}(command)", command))
        except Error as error:
            return {"error": str(error).splitlines()[0][:300]}

    def close(self) -> None:
        self.page.context.close()


class Handler(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        for name, value in ISOLATED.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def main(words: list[str] | None = None) -> dict[str, Any]:
    """The figures, as printed and written."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.web", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--nets", default=",".join(NETS), help="networks of the zoo, or wide/NAME")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "int8"))
    parser.add_argument("--seconds", type=float, default=3, help="per engine and network")
    parser.add_argument("--threads", type=int, default=1, help="of both engines")
    parser.add_argument("--json", type=Path, help="file for every figure")
    parser.add_argument("--files", type=Path, help="folder of converted models, kept")
    args = parser.parse_args(words)
    if not PACKAGE.is_dir():
        parser.error(f"no {PACKAGE}: see the first lines of benchmarks/web/__main__.py")
    files = Files((args.files or Path(settings.cache_dir()) / "benchmarks").absolute())
    result: dict[str, Any] = {
        "environment": {**environment(), "load_average": os.getloadavg()},
        "precision": args.precision, "threads": args.threads, "nets": {},
        "unit": "ms unless the key says so",
    }  # fmt: skip
    start = time.monotonic()
    table.print_head(ENGINES, cold=False)
    with open_chromium() as browser:
        version = json.loads((PACKAGE / "package.json").read_text())["version"]
        result["environment"] |= {"chromium": browser.version, PEER: version}
        for network in args.nets.split(","):
            found = _measure(browser, files, network, args.precision, args.seconds, args.threads)
            table.print_row(network, args.threads, ENGINES, found, "min_ms")
            result["nets"][f"{network}/{args.threads}"] = found
    result["seconds"] = time.monotonic() - start
    result["ratios"] = table.ratios(result["nets"], "min_ms")
    table.print_foot(result["nets"], result["ratios"])
    print(f"Chromium {browser.version}, {PEER} {version}, {result['environment']['cpu']}")
    if args.json:
        args.json.write_text(json.dumps(result, indent=1))
    return result


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder, served to isolated pages."""
    handler = partial(Handler, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def _measure(
    browser: Any, files: Files, network: str, precision: str, seconds: float, threads: int
) -> dict[str, dict[str, Any]]:
    """Per engine: least and median ms, seconds of load and first run; or "error"."""
    source, feeds = files.network(network)
    model = files.model("onnxruntime", source, feeds, precision)  # int8: the QDQ form
    with np.load(feeds) as file:
        inputs = [to_text(name, file[name]) for name in file.files]
    rows: dict[str, dict[str, Any]] = {}
    pages: dict[str, Page] = {}
    outputs: dict[str, list[np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as name, served(Path(name)) as origin:
        folder = Path(name)
        export_model(optimize(model, targets=["wasm"]), folder / "model", "web")
        for link, target in (
            ("index.html", HERE / "index.html"), ("page.js", HERE / "page.js"),
            ("peer", PACKAGE.absolute() / "dist"), ("model.onnx", model),
        ):  # fmt: skip
            (folder / link).symlink_to(target)
        try:
            for engine, path in (("lite", "model/model.lite"), (PEER, "model.onnx")):
                pages[engine] = Page(browser, origin)
                rows[engine] = pages[engine].ask(
                    engine=engine, model=path, inputs=inputs, threads=threads
                )
                if "error" in rows[engine]:
                    pages.pop(engine).close()
                else:
                    outputs[engine] = [from_text(t) for t in rows[engine].pop("outputs")]
            run_in_turn(pages, rows, seconds)
        finally:
            for page in pages.values():
                page.close()
    if len(outputs) == len(ENGINES):
        distance = rows[PEER]["distance"] = distance_of(outputs[PEER], outputs["lite"])
        if distance is None or distance > SAME[precision]:
            rows[PEER]["error"] = f"its output is not ours (distance {distance})"
    return rows


def to_text(name: str, value: np.ndarray) -> dict[str, Any]:
    """A tensor as page.js reads it."""
    dtype = next(name for name, kind in DTYPES.items() if value.dtype == kind)
    data = base64.b64encode(np.ascontiguousarray(value)).decode()
    return {"name": name, "dtype": dtype, "shape": list(value.shape), "data": data}


def from_text(tensor: dict[str, Any]) -> np.ndarray:
    """A tensor as page.js writes it."""
    data = base64.b64decode(tensor["data"])
    return np.frombuffer(data, DTYPES[tensor["dtype"]]).reshape(tensor["shape"])


if __name__ == "__main__":
    main()
