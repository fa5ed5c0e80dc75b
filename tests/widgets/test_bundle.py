"""The module loader: deterministic, each module once, and strict."""

from __future__ import annotations

from pathlib import Path

import pytest
from lite_widgets._bundle import BundleError, bundle


def _write(folder: Path, **sources: str) -> Path:
    for name, text in sources.items():
        (folder / f"{name}.js").write_text(text, "utf-8")
    return folder / "entry.js"


def test_shared_module_is_inlined_once_before_its_users(tmp_path):
    entry = _write(
        tmp_path,
        entry='import { a } from "./a.js";\nimport * as b from "./b.js";\n'
        "export const sum = a + b.twice;\nexport default { sum };\n",
        a='import { one } from "./c.js";\nexport const a = one;\n',
        b='import { one as uno } from "./c.js";\nexport function two() { return 2 * uno; }\n'
        "export const twice = two();\n",
        c="export const one = 1;\n",
    )
    text = bundle(entry)
    assert text.count("const one = 1;") == 1
    assert text.index("const one = 1;") < text.index("const a = one;")
    assert "import " not in text and "one: uno" in text
    assert text.rstrip().endswith("export default { sum };")
    bundle.cache_clear()
    assert bundle(entry) == text


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ({"entry": 'import { x } from "./no.js";\n'}, "no such module"),
        ({"entry": 'import { x } from "lodash";\n'}, "only relative"),
        ({"entry": 'import x from "./a.js";\n', "a": "export const x = 1;\n"}, "cannot inline"),
        ({"entry": 'import "./a.js";\n', "a": ""}, "cannot inline"),
        ({"entry": 'import { y } from "./a.js";\n', "a": "export const x = 1;\n"}, "export y"),
        ({"entry": 'import { x } from "./a.js";\n', "a": "export default 1;\n"}, "cannot inline"),
        ({"entry": 'import { x } from "./a.js";\n', "a": 'export * from "./b.js";\n'}, "cannot"),
        ({"entry": 'import { a } from "./a.js";\n',
          "a": 'import { b } from "./b.js";\nexport const a = 1;\n',
          "b": 'import { a } from "./a.js";\nexport const b = 1;\n'}, "circle"),
    ],
)  # fmt: skip
def test_everything_else_is_refused(tmp_path, sources, words):
    entry = _write(tmp_path, **sources)
    with pytest.raises(BundleError, match=words):
        bundle(entry)


def test_all_javascript_is_small():
    """Every widget's module together, each once, without plotly."""
    from benchmarks.workbench import LIMITS, javascript_bytes

    assert 100_000 < javascript_bytes() < LIMITS["javascript_bytes"]


def test_comments_on_lines_of_their_own_are_left_out(tmp_path):
    source = (
        "// first\n/** two\n * lines */\nexport const url = 'http://x/*y*/'; // kept\n"
        "  // indented\nexport const b = url /* kept */;\n"
    )
    text = bundle(_write(tmp_path, entry=source))
    assert text == (
        "export const url = 'http://x/*y*/'; // kept\nexport const b = url /* kept */;\n"
    )
