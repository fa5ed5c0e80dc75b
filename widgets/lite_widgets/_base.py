"""LiteWidget: what every widget of this package has in common.

A widget is one folder with a Python, a JavaScript and a CSS file of the folder's name. Python
checks the data and owns the state; JavaScript draws it. Nothing is fetched: `make bundle` joins
each widget with the modules that it imports, and the shared style sheet is put before its own.
"""

from __future__ import annotations

import difflib
import html
import inspect
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import comm
import traitlets as t
from comm.base_comm import BaseComm
from lite_messages import tr, translations

from .data import with_new_names

_SHARED = Path(__file__).with_name("_shared")
_STATIC = Path(__file__).with_name("static")
#: Beside a widget's view: our JupyterLab extension then shows the static image where no kernel
#: holds the widget any more, instead of ipywidgets' "model not found".
VIEW_MIME = "application/vnd.lite-workbench.view+json"


class LiteWidget(anywidget.AnyWidget):
    """Base of all widgets. Every public trait is synced with the page by construction.

    Traits that all widgets have:

    selected  names of the selected layers, in order of selection; set by clicks and by Python.
    link      widgets with the same non-empty link follow each other in the page itself: selection,
              hovering, tolerance and hidden types, also where no kernel runs.
    theme     "auto" follows JupyterLab live; "light" and "dark" force one.
    status    {} or what stands in place of the plot (UX: empty, error):
              {"kind": "empty", "title", "text", "button", "action"}
              {"kind": "error", "what", "where", "fix", "tried": [[mark, where, what], …]}
    action    what was clicked last: {"id", "seq", …payload}. `seq` grows with every click, so that
              the same button twice is two changes. Listen with `on_action`.
    caption   "date · machine", printed under the static picture.
    python    the line of Python that made this view, printed under the static picture.

    Raises TypeError for an unknown keyword, with the nearest known one.
    """

    selected = t.List(t.Unicode())
    link = t.Unicode("")
    theme = t.Enum(["auto", "light", "dark"], default_value="auto")
    status = t.Dict()
    action = t.Dict()
    caption = t.Unicode("")
    python = t.Unicode("")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        _sync_public_traits(cls)
        source = Path(inspect.getfile(cls))
        if source.parent.parent == _STATIC.parent and "_esm" not in vars(cls):
            cls._esm = bundled(source.stem)
            own = source.with_suffix(".css")
            shared = (_SHARED / "lite.css").read_text("utf-8")
            cls._css = shared + (own.read_text("utf-8") if own.exists() else "")
        super().__init_subclass__(**kwargs)

    def __init__(self, **kwargs: Any) -> None:
        known = set(self.trait_names())
        for name in kwargs:
            if name not in known or name.startswith("_"):
                near = difflib.get_close_matches(name, known, n=1)
                hint = tr("; did you mean {near}?", near=near[0]) if near else ""
                raise TypeError(
                    tr("{widget} has no trait {name!r}", widget=type(self).__name__, name=name)
                    + hint
                )
        super().__init__(**kwargs)

    def open(self) -> None:
        """As ipywidgets does it. Where no kernel would send the state to a page, it is not prepared
        for that: nobody has put anything in the place of `comm.create_comm`."""
        unheard = comm.create_comm.__module__ == comm.__name__
        if unheard and self.comm is None:  # type: ignore[has-type]
            self.comm = _Unheard(target_name="jupyter.widget")
        super().open()

    def on_action(self, callback: Callable[..., None], *ids: str) -> None:
        """Call ``callback(id, payload)`` for each click on a button (of `ids`, or any)."""

        def relay(change: Mapping[str, Any]) -> None:
            payload = {k: v for k, v in change["new"].items() if k not in ("id", "seq")}
            if change["new"] and (not ids or change["new"].get("id") in ids):
                callback(change["new"].get("id"), payload)

        self.observe(relay, names=["action"])

    # ---- where there is no kernel -------------------------------------------------------------

    def static_svg(self) -> str | None:
        """Return the view as SVG text, or None for a table or a form."""
        return None

    def static_html(self) -> str:
        """Return the picture (or table) with its caption as HTML, for saved notebooks."""
        picture = self._static_status() or self.static_svg() or ""
        return f'<figure style="margin:0">{picture}{self._static_caption()}</figure>'

    def _static_status(self) -> str:
        """What stands in place of the picture, such as that nothing was measured yet; nothing of
        work under way, which does not go on there."""
        title = "" if self.status.get("under_way") else self.status.get("title", "")
        return f"<p>{html.escape(title)}</p>" if title else ""

    def _static_caption(self) -> str:
        parts = [html.escape(part) for part in (self.caption,) if part]
        if self.python:
            parts.append(f"<code>{html.escape(self.python)}</code>")
        style = "font:11px sans-serif;margin-top:4px"  # in the colour of the page, light or dark
        return f'<figcaption style="{style}">{" · ".join(parts)}</figcaption>' if parts else ""

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        made = super()._repr_mimebundle_(**kwargs)
        if made is None:
            return None
        data, metadata = made
        picture = self.static_svg()
        if picture:
            data["image/svg+xml"] = picture
        data["text/html"] = self.static_html()
        data[VIEW_MIME] = {}
        data["text/plain"] = f"{type(self).__name__}({self.caption or 'widget'})"
        return data, metadata


class _Unheard(BaseComm):
    """A comm without a kernel, which ipywidgets sends nothing."""

    kernel = None

    def publish_msg(self, *args: Any, **kwargs: Any) -> None:
        pass


def bundled(name: str) -> str:
    """Return the bundled JavaScript of this name, after the translations of its texts where there
    are any (`_shared/words.js` reads them). Raises FileNotFoundError where it is missing."""
    path = _STATIC / f"{name}.js"
    try:
        source = path.read_text("utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(
            tr("{path}: the bundle is missing; run `make bundle`", path=path)
        ) from None
    words = translations(source)
    return f"globalThis.liteWords = {json.dumps(words)};\n{source}" if words else source


def _sync_public_traits(cls: type) -> None:
    for name, trait in vars(cls).items():
        if isinstance(trait, t.TraitType) and not name.startswith("_"):
            trait.tag(sync=True)


_sync_public_traits(LiteWidget)  # __init_subclass__ sees only the classes below it


def plain(value: Any, where: str) -> Any:
    """Return `value` as JSON-safe data: not-a-number and infinity become None.

    Numbers of NumPy become Python's. Raises TypeError, naming `where`, for anything that is not
    a mapping, sequence, number, text, truth value or None.
    """
    return json.loads(plain_json(value, where))


def plain_json(value: Any, where: str) -> str:
    """Return `value`, made plain, as JSON without spaces. Raises TypeError, naming `where`."""
    try:  # in C: a large model's data has millions of values
        return _json(value, default=_of_numpy)
    except (TypeError, ValueError, RecursionError):
        pass  # what JSON does not have, by name or as None
    try:
        return _json(_plain(value))
    except _NotPlain as error:
        raise TypeError(
            tr(
                "{where}: {type} is not plain data; pass dicts, lists, numbers",
                where=where + "".join(reversed(error.way)),
                type=error.kind,
            )
        ) from None


def _json(value: Any, **options: Any) -> str:
    return json.dumps(
        value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), **options
    )  # fmt: skip


def _of_numpy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError


class _NotPlain(Exception):
    """What is no plain data is of type `kind`; `way` leads to it, the innermost part first."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind
        self.way: list[str] = []


#: Types whose values are plain as they are, by the type itself: data has millions of values.
_AS_IS = frozenset((str, bool, int, type(None)))


def _plain(value: Any) -> Any:
    if type(value) in _AS_IS:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        found: Any = {}
        for key, item in value.items():
            try:
                found[str(key)] = item if type(item) in _AS_IS else _plain(item)
            except _NotPlain as error:
                error.way.append(f".{key}")
                raise
        return found
    if isinstance(value, (list, tuple)):
        found = []
        for item in value:
            try:
                found.append(item if type(item) in _AS_IS else _plain(item))
            except _NotPlain as error:
                error.way.append(f"[{len(found)}]")
                raise
        return found
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return int(value)
    raise _NotPlain(type(value).__name__)


class Checked(dict[str, Any]):
    """Plain data that `checked` made. Widgets share it, so nobody changes it; `json` is the same as
    JSON without spaces."""

    def __init__(self, text: str, rows: str) -> None:
        super().__init__(json.loads(text))
        self.json = text
        self.rows = rows


def checked(value: Mapping[str, Any], where: str, rows: str = "layers") -> Checked:
    """`value` as a trait `Plain(rows=rows)` keeps it. Such traits take the result as it is, so that
    what many widgets show is checked once and held once. Raises TypeError, naming `where`, and
    TraitError for rows that are none."""
    return Checked(plain_json(_completed(with_new_names(value), rows, where), where), rows)


def _completed(data: dict[str, Any], rows: str, where: str) -> dict[str, Any]:
    from ._rows import complete

    data[rows] = complete(data[rows], f"{where}[{rows!r}]")
    return data


class Plain(t.Dict):
    """A trait of plain data, checked and made JSON-safe; ``None`` means "not there yet".

    Data that an older version wrote is brought up to date (`data.with_new_names`).

    Plain(rows="layers") also completes each row of that list with `block` and `type`, by which
    the views group and colour (see `_rows.complete`). Plain(need=("name",)) lists needed keys.
    """

    def __init__(self, *, need: tuple[str, ...] = (), rows: str | None = None, **kwargs: Any):
        self._need = need
        self._rows = rows
        super().__init__(default_value=kwargs.pop("default_value", None), allow_none=True, **kwargs)

    def validate(self, obj: Any, value: Any) -> Any:
        if value is None:
            return None
        where = f"{type(obj).__name__}.{self.name}"
        if hasattr(value, "to_dict"):
            value = value.to_dict()
        if not isinstance(value, Mapping):
            raise t.TraitError(
                tr("{where} must be a dict, not {type}", where=where, type=type(value).__name__)
            )
        ready = value if isinstance(value, Checked) and value.rows == self._rows else None
        try:
            data = ready if ready is not None else with_new_names(plain(value, where))
        except TypeError as error:
            raise t.TraitError(str(error)) from error
        missing = [key for key in self._need if key not in data]
        if missing:
            raise t.TraitError(
                tr(
                    "{where} lacks {names}; see lite_widgets.data",
                    where=where,
                    names=", ".join(missing),
                )
            )
        return _completed(data, self._rows, where) if self._rows and ready is None else data


class PlainList(t.List[Any]):
    """A trait that is a list of plain dicts, each with the keys in `need`."""

    def __init__(self, *, need: tuple[str, ...] = (), **kwargs: Any) -> None:
        self._need = need
        super().__init__(**kwargs)

    def validate(self, obj: Any, value: Any) -> Any:
        where = f"{type(obj).__name__}.{self.name}"
        try:
            rows = plain(list(value), where)
        except TypeError as error:
            raise t.TraitError(str(error)) from error
        for i, row in enumerate(rows):
            missing = [k for k in self._need if not isinstance(row, dict) or k not in row]
            if missing:
                raise t.TraitError(
                    tr("{where}[{i}] lacks {names}", where=where, i=i, names=", ".join(missing))
                )
        return rows


class Binary(t.Bytes):
    """Bytes; from the page they come as a memoryview, which is made bytes here."""

    def validate(self, obj: Any, value: Any) -> bytes | None:
        if isinstance(value, (bytearray, memoryview)):
            value = bytes(value)
        return super().validate(obj, value)


class Float32(t.Bytes):
    """A long array as float32 bytes in C order; accepts anything that NumPy can make one of."""

    def validate(self, obj: Any, value: Any) -> bytes | None:
        if isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
            if len(data) % 4:
                raise t.TraitError(
                    tr(
                        "{where}: {size} bytes are not an array of float32",
                        where=f"{type(obj).__name__}.{self.name}",
                        size=len(data),
                    )
                )
            return data
        import numpy as np

        try:
            return np.ascontiguousarray(value, dtype="<f4").tobytes()
        except (TypeError, ValueError, OverflowError):
            self.error(obj, value)
