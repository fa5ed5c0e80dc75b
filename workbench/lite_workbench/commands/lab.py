"""`lite lab`: JupyterLab on the lessons."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from lite_engine import system
from lite_messages import tr

from ._base import Command

FIRST = "01_first_walk.ipynb"
#: Defaults of JupyterLab's settings, as its server reads them from a folder of configuration.
CONFIG = Path(__file__).with_name("lab_config")
EXTENSION = "lite_widgets.netron_view.extension"


@dataclass
class Opened:
    """What JupyterLab was started with, and how it ended."""

    command: list[str]
    folder: Path
    code: int


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "notebook",
        nargs="?",
        metavar="NOTEBOOK",
        help=tr("notebook to open, or the number of a lesson (default: {first})", first=FIRST),
    )
    parser.add_argument(
        "--port",
        type=int,
        metavar="N",
        help=tr("port of the server (default: 8888, or the next free one)"),
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help=tr("print the address instead of opening a browser"),
    )


def _notebook(given: str) -> Path:
    """A notebook by its path, or a lesson by its number."""
    if given.isdecimal() and not Path(given).exists():
        return next(lessons().glob(f"{int(given):02d}_*.ipynb"), Path(given))
    return Path(given)


def _call(args: argparse.Namespace) -> Opened:
    from importlib.util import find_spec

    from lite_engine.errors import LiteError

    if find_spec("jupyterlab") is None:
        raise LiteError(
            tr("JupyterLab is not installed"), command="pip install 'lite-workbench[lab]'"
        )
    path = _notebook(args.notebook) if args.notebook else lessons() / FIRST
    if not path.exists():
        raise LiteError(
            tr("no such notebook"), where=path, fix=tr("`lite lab` alone opens the first lesson")
        )
    command = [
        sys.executable, "-m", "jupyterlab", path.name,
        f"--ServerApp.jpserver_extensions={{'{EXTENSION}': True}}",
        f"--LabApp.default_url=/lab/tree/{quote(path.name)}",  # the address that it prints
    ]  # fmt: skip
    if args.port:
        command.append(f"--port={args.port}")
    if args.no_browser:
        command.append("--no-browser")
    if system.is_root():
        command.append("--allow-root")  # containers run as root, and Jupyter refuses it by default
    folder = path.parent.resolve()
    ended = subprocess.run(command, cwd=folder, env=_environment(), check=False)
    return Opened(command, folder, ended.returncode)


def _environment() -> dict[str, str]:
    """JupyterLab asks nobody about news and looks for no updates: nothing leaves the machine. What
    the person has set goes before these defaults."""
    paths = [str(CONFIG), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    return {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)}


def lessons() -> Path:
    """The folder of the lessons; those of an installed package are copied here first, so that
    what is written beside them stays with the person. Raises LiteError."""
    from lite_engine.files import copy_tree, filling

    from ..lessons import folder

    source = folder()
    if "site-packages" not in source.parts:
        return source
    here = Path("lite-lessons")
    if not here.exists():
        with filling(here) as part:
            copy_tree(source, part)
    return here


def _show(result: Opened, args: argparse.Namespace) -> str:
    return ""


COMMAND = Command("lab", _configure, _call, _show, lambda result, args: result.code)
