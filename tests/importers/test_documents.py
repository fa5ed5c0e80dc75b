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
    (lambda d: d["a"]["b"], "document.a: expected an object, found a list"),
    (lambda d: d["a"][5], "document.a: expected at least 6 items, found 5"),
    (lambda d: d["a"][-1], "document.a: expected at least 0 items, found 5"),
    (lambda d: d["b"].items(), "document.b: expected a list, found an object"),
    (lambda d: d["a"][1].integer(), "document.a[1]: expected an integer, found a number '2.5'"),
    (lambda d: d["a"][3].integer(), "document.a[3]: expected an integer, found true or false"),
    (lambda d: d["e"].integer(), "document.e: expected an integer, found an integer '1844674407"),
    (lambda d: d["e"].number(), "document.e: expected a number, found an integer '1844674407"),
    (lambda d: d["a"][4].text(), "document.a[4]: expected a string, found null"),
    (lambda d: d["b"].truth(), "document.b: expected true or false, found an object"),
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
    ('{"a": 1, "b": [true]}', r"m\.b\[0\]: expected a number, found true or false"),
    ('{"a": 1, "b": {}}', r"m\.b: expected a list, found an object"),
    ('{"a": 1, "b": [], "d": 5}', r"m\.d: expected a string, found an integer '5'"),
    ("[]", "m: expected an object, found a list"),
])  # fmt: skip
def test_into_what_it_is_not(text: str, message: str) -> None:
    with pytest.raises(ModelFormatError, match=message):
        parse(text, "m").into(Made)


@pytest.mark.parametrize("text", ["", "{", "[1,]", b"\xff\xfe\x00", "[" * 100_000])
def test_what_is_no_json(text: str | bytes) -> None:
    with pytest.raises(ModelFormatError, match="document"):
        parse(text, "document")
