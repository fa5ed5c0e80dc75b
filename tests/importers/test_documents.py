"""JSON of others: what is there comes out, what is not is told with its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from lite_engine.documents import Part, parse
from lite_engine.errors import ModelFormatError

TEXT = '{"a": [1, 2.5, "x", true, null], "b": {"c": -1}, "d": null, "e": 18446744073709551616}'


def test_what_is_there() -> None:
    d = parse(TEXT, "document")
    assert [p.value for p in d["a"].items()] == [1, 2.5, "x", True, None]
    assert d["b"]["c"].integer() == -1
    assert (d["a"][0].number(), d["a"][1].number()) == (1.0, 2.5)
    assert d["a"][2].text() == "x"
    assert d["a"][3].truth() is True and d["a"][0].truth() is True
    assert d.get("d") is None and d.get("z") is None
    assert [*d["b"].fields()] == ["c"]
    assert d["a"][1].where == "document.a[1]"


@pytest.mark.parametrize(("ask", "message"), [
    (lambda d: d["z"], "document: 'z' is missing"),
    (lambda d: d["a"]["b"], "document.a: a list, an object is needed"),
    (lambda d: d["a"][5], "document.a: 5 items, 6 are needed"),
    (lambda d: d["a"][-1], "document.a: 5 items, 0 are needed"),
    (lambda d: d["b"].items(), "document.b: an object, a list is needed"),
    (lambda d: d["a"][1].integer(), "document.a[1]: a number '2.5', an integer is needed"),
    (lambda d: d["a"][3].integer(), "document.a[3]: true or false, an integer is needed"),
    (lambda d: d["e"].integer(), "document.e: an integer '18446744073709551616', an integer "),
    (lambda d: d["e"].number(), "document.e: an integer '18446744073709551616', a number "),
    (lambda d: d["a"][4].text(), "document.a[4]: null, a text is needed"),
    (lambda d: d["b"].truth(), "document.b: an object, true or false is needed"),
])  # fmt: skip
def test_what_is_not(ask: Callable[[Part], Any], message: str) -> None:
    with pytest.raises(ModelFormatError) as found:
        ask(parse(TEXT, "document"))
    assert str(found.value).startswith(message)


@dataclass
class Made:
    a: int
    b: list[float | None]
    c: dict[str, bool] = field(default_factory=dict)
    d: str | None = None


def test_into_a_dataclass() -> None:
    made = parse('{"a": 1, "b": [1, null], "more": 5, "c": {"x": true}}', "m").into(Made)
    assert made == Made(1, [1.0, None], {"x": True})


@pytest.mark.parametrize(("text", "message"), [
    ('{"b": []}', "m: 'a' is missing"),
    ('{"a": 1, "b": [true]}', r"m\.b\[0\]: true or false, a number is needed"),
    ('{"a": 1, "b": {}}', r"m\.b: an object, a list is needed"),
    ('{"a": 1, "b": [], "d": 5}', r"m\.d: an integer '5', a text is needed"),
    ("[]", "m: a list, an object is needed"),
])  # fmt: skip
def test_into_what_it_is_not(text: str, message: str) -> None:
    with pytest.raises(ModelFormatError, match=message):
        parse(text, "m").into(Made)


@pytest.mark.parametrize("text", ["", "{", "[1,]", b"\xff\xfe\x00", "[" * 100_000])
def test_what_is_no_json(text: str | bytes) -> None:
    with pytest.raises(ModelFormatError, match="document"):
        parse(text, "document")
