"""What every answer has in common: its plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from lite_engine.runtime.answer import as_dict


class Place(NamedTuple):
    at: list[int]


@dataclass
class Row:
    name: str
    sizes: tuple[int, ...] = (1, 2)
    more: dict[str, Any] = field(default_factory=dict)


@dataclass
class Table:
    rows: list[Row]
    best: Row | None
    place: Place


def test_plain_data_is_that_of_the_standard_library() -> None:
    inner = Row("inner")
    table = Table([Row("a", more={"row": inner, "list": [1.5, None]}), Row("b")], None, Place([1]))
    assert as_dict(table) == asdict(table)
    assert type(as_dict(table)["place"]) is Place


def test_who_changes_plain_data_changes_nothing_else() -> None:
    array = np.zeros(2)
    table = Table([Row("a", more={"list": [1], "array": array})], None, Place([1]))
    made = as_dict(table)
    made["rows"][0]["more"]["list"].append(2)
    made["rows"][0]["more"]["array"][:] = 1
    made["place"].at.append(2)
    made["rows"].clear()
    assert table.rows[0].more["list"] == [1] and table.place == Place([1])
    assert not array.any()
