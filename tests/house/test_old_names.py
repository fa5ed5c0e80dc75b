"""Every name that was renamed still works, and warns at the line that used it."""

from __future__ import annotations

import ast
import importlib
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lite_engine.quantize
import lite_workbench as lw
import pytest
from lite_engine import optimize
from lite_workbench.state.versions import GIVEN

from tests.small_models import classifier

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "lite_engine": ROOT / "engine",
    "lite_widgets": ROOT / "widgets",
    "lite_workbench": ROOT / "workbench",
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Every module with an old name."""
    for package, folder in PACKAGES.items():
        for path in sorted((folder / package).rglob("*.py")):
            text = path.read_text("utf-8")
            if path.name != "_deprecated.py" and re.search(r"deprecated_name\(|renamed\(", text):
                parts = path.relative_to(folder).with_suffix("").parts
                yield ".".join(parts).removesuffix(".__init__"), ast.parse(text)


def arguments(node: ast.AST, function: str) -> list[ast.expr] | None:
    """Those of a call of the function; None for anything else."""
    called = isinstance(node, ast.Call) and getattr(node.func, "id", "") == function
    return node.args if isinstance(node, ast.Call) and called else None


def attributes() -> Iterator[tuple[str, str, str, str]]:
    """Module, class, old and new name of every attribute with an alias."""
    for module, tree in sources():
        for owner in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
            for line in (n for n in owner.body if isinstance(n, ast.Assign)):
                if names := arguments(line.value, "deprecated_name"):
                    old, new = (ast.literal_eval(name) for name in names)
                    assert [getattr(t, "id", "") for t in line.targets] == [old]
                    yield module, owner.name, old, new


def functions() -> set[str]:
    """Every function that warns by itself."""
    return {
        f"{module}.{made.name}"
        for module, tree in sources()
        for made in ast.walk(tree)
        if isinstance(made, ast.FunctionDef)
        and any(arguments(n, "warn_renamed") is not None for n in ast.walk(made))
    }


@contextmanager
def warned(old: str, new: str) -> Iterator[None]:
    """The block warns once that `old` is now `new`, at a line of this file: Python shows such a
    warning only where the line is a person's own."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
    told = [w for w in seen if "is deprecated; use" in str(w.message)]
    assert [str(w.message) for w in told] == [f"{old} is deprecated; use {new}"]
    assert told[0].category is DeprecationWarning and told[0].filename == __file__


@pytest.mark.parametrize(("module", "owner", "old", "new"), list(attributes()))
def test_an_attribute(module: str, owner: str, old: str, new: str) -> None:
    cls = getattr(importlib.import_module(module), owner)
    plain = type(owner, (cls,), {new: "its value", "__init__": lambda self: None})
    with warned(f"{owner}.{old}", new):
        assert getattr(plain(), old) == "its value"


@pytest.fixture
def session(tmp_path: Path) -> lw.Session:
    return lw.Session(optimize(classifier(), targets=["x86"]).save(tmp_path / "m.lite"))


def _given(session: lw.Session) -> None:
    session.versions[GIVEN] = session.model
    with warned('the version "as given"', f'"{GIVEN}"'):
        session.use("as given")
    assert session.version == GIVEN


def _quantised(session: lw.Session) -> None:
    with warned("lite_engine.quantize.Quantised", "lite_engine.quantize.Quantized"):
        assert lite_engine.quantize.Quantised is lite_engine.quantize.Quantized


def _by_hand(session: lw.Session) -> None:
    with warned("session.by_hand", "session.overrides"):
        assert session.by_hand is session.overrides


def _sides(session: lw.Session) -> None:
    with warned("session.sides", "lite_workbench.state.comparisons.sides_of"):
        assert set(session.sides(("reference", "x86"))) == {"reference", "x86"}


def _side_precisions(session: lw.Session) -> None:
    new = "lite_workbench.state.comparisons.precisions_of_sides"
    with warned("session.side_precisions", new):
        assert session.side_precisions(("reference", "reference")) == ("fp32", "fp32")


def _set_version(session: lw.Session) -> None:
    with warned("session.set_version", "lite_workbench.state.versions.keep"):
        session.set_version("mine", session.model)
    assert session.versions["mine"] is session.model


def _drop_version(session: lw.Session) -> None:
    kept = session.version
    session.versions["mine"] = session.model
    with warned("session.drop_version", "lite_workbench.state.versions.drop"):
        session.drop_version("mine", kept)
    assert list(session.versions) == [kept]


USES: dict[str, Callable[[lw.Session], None]] = {
    "lite_engine.quantize.__getattr__": _quantised,
    "lite_workbench._old_names.by_hand": _by_hand,
    "lite_workbench._old_names.sides": _sides,
    "lite_workbench._old_names.side_precisions": _side_precisions,
    "lite_workbench._old_names.set_version": _set_version,
    "lite_workbench._old_names.drop_version": _drop_version,
    "lite_workbench.state.versions.use": _given,
}


def test_every_function_that_warns_is_used_here() -> None:
    assert functions() == set(USES) and len(list(attributes())) >= 11


@pytest.mark.parametrize("name", list(USES))
def test_a_function(name: str, session: lw.Session) -> None:
    USES[name](session)
