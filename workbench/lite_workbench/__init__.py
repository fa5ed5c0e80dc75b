"""Lite Workbench: from a trained model to a board, inside JupyterLab.

    import lite_workbench as lw
    session = lw.open("model.onnx")
    session.convert(targets=["x86", "opencl"])
    lw.Workbench(session)

In a notebook, ``%load_ext lite_workbench`` adds the `%lite` magic. Names are loaded when they are
first used: the import is light.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lite_engine import LiteError, __version__

    from .session import Session
    from .workbench import Workbench

_LAZY = {
    "LiteError": ("lite_engine", "LiteError"),
    "__version__": ("lite_engine", "__version__"),
    "Session": (".session", "Session"),
    "Workbench": (".workbench", "Workbench"),
    "open": (".opening", "open_any"),
    "pipeline": (".opening", "open_pipeline"),
    "restore": (".opening", "restore"),
    "shipped": (".lessons", "shipped"),
    "load_ipython_extension": (".magics", "load_ipython_extension"),
    "unload_ipython_extension": (".magics", "unload_ipython_extension"),
}

#: Packages that only the extra `lab` brings.
_OF_LAB = ("ipywidgets", "anywidget", "traitlets", "IPython")

__all__ = [
    "LiteError", "Session", "Workbench", "__version__", "open", "pipeline", "restore", "shipped",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'lite_workbench' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _LAZY[name]
    try:
        return getattr(import_module(module, __name__), attribute)
    except ModuleNotFoundError as error:
        if error.name not in _OF_LAB:
            raise
        raise _without_lab(name, error.name) from None


def _without_lab(name: str, missing: str) -> Exception:
    from lite_engine.errors import LiteError
    from lite_messages import tr

    return LiteError(
        tr(
            "{name} needs the package {missing}, which is not installed", name=name, missing=missing
        ),
        command="pip install 'lite-workbench[lab]'",
    )


def _display_in_ipython() -> None:
    """Where IPython runs already, answers display as widgets from here on."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        from .rich import install

        install(shell)


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY})


_display_in_ipython()
