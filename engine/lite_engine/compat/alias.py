"""`from paddlelite.lite import *` on this engine, where Paddle-Lite itself is not installed.

    python -m lite_engine.compat.alias SCRIPT.py ARGUMENTS    # runs a script unchanged

    import lite_engine.compat.alias                           # or, in a program of one's own,
    lite_engine.compat.alias.install()                        # before it imports paddlelite

No package of that name is installed, so nothing shadows the real one: the import is answered last,
when nothing else has a `paddlelite`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from lite_messages import tr

PACKAGE = "paddlelite"
#: Name that scripts import → module that serves it.
_SERVED = {PACKAGE: "", f"{PACKAGE}.lite": "lite_engine.compat.paddlelite"}


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers the two names. It stands last, so that an installed package is found before."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        # The real package without its `lite` is a broken installation: half of it is not ours.
        if name not in _SERVED or (name != PACKAGE and not _ours()):
            return None
        return importlib.util.spec_from_loader(name, self, is_package=not _SERVED[name])

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return importlib.import_module(_SERVED[spec.name]) if _SERVED[spec.name] else None

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the served module is whole, the package empty."""


_ALIAS = _Alias()


def _ours() -> bool:
    spec = getattr(sys.modules.get(PACKAGE), "__spec__", None)
    return spec is not None and spec.loader is _ALIAS


def install() -> bool:
    """Serves `paddlelite` from now on; False where the real package is installed, which stays."""
    if (
        not _ours()
        and importlib.util.find_spec(PACKAGE) is not None
        and _ALIAS not in sys.meta_path
    ):
        return False
    if _ALIAS not in sys.meta_path:
        sys.meta_path.append(_ALIAS)
    return True


def main(arguments: Sequence[str]) -> None:
    if not arguments:
        sys.exit(tr("usage: python -m lite_engine.compat.alias SCRIPT.py [ARGUMENTS]"))
    if not install():
        print(tr("note: Paddle-Lite is installed here and runs the script"), file=sys.stderr)
    sys.argv = list(arguments)
    sys.path.insert(0, str(Path(arguments[0]).resolve().parent))  # as `python SCRIPT.py` does
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    # `python -m` runs this file a second time under another name: there is to be one finder.
    importlib.import_module("lite_engine.compat.alias").main(sys.argv[1:])
