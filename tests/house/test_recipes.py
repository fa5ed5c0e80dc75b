"""The recipes of scripts/packaging/, filled for a release and held to what an index wants."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lite_engine import __version__

from scripts import recipes

yaml = pytest.importorskip("yaml", reason="pip install 'lite-workbench[test]'")

ROOT = Path(__file__).parents[2]
URL = "https://example.org/lite_workbench.tar.gz"


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    sdist = tmp_path / "sdist.tar.gz"
    sdist.write_bytes(b"sources")
    recipes.fill(sdist, URL, tmp_path / "made")
    return tmp_path / "made"


def test_nothing_is_left_open(filled: Path) -> None:
    for path in filled.rglob("*"):
        if path.is_file():
            assert not re.search(r"@[A-Z0-9_]+@", path.read_text()), path


def test_the_conda_recipe_is_the_package(filled: Path) -> None:
    made = yaml.safe_load((filled / "conda" / "recipe.yaml").read_text())
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads pyproject.toml")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    spelled = {need.replace(" ", "") for need in made["requirements"]["run"]}
    assert spelled == {*project["project"]["dependencies"], "python>=3.10"}
    assert f"python{project['project']['requires-python']}" in spelled
    host = {need.replace(" ", "") for need in made["requirements"]["host"]}
    assert {*project["build-system"]["requires"]} <= host
    assert made["context"]["version"] == __version__
    assert made["source"] == {"url": URL, "sha256": hashlib.sha256(b"sources").hexdigest()}


def test_the_formula(filled: Path) -> None:
    text = (filled / "homebrew" / "lite-workbench.rb").read_text()
    desc = re.search(r'desc "([^"]+)"', text)[1]
    assert len(desc) <= 80 and not desc.startswith(("A ", "An ", "The ")) and desc[-1] != "."
    assert f'url "{URL}"' in text
    if shutil.which("ruby"):
        subprocess.run(["ruby", "-c", filled / "homebrew" / "lite-workbench.rb"], check=True)


def paragraphs(path: Path) -> list[dict[str, str]]:
    """A file of Debian's: paragraphs of fields, whose further lines begin with a space."""
    found = []
    for text in path.read_text().split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in text.splitlines():
            if line[:1] == " ":
                fields[name] += f"\n{line[1:]}"
            else:
                name, _, value = line.partition(": ")
                fields[name] = value
        found.append(fields)
    return found


def test_debian(filled: Path) -> None:
    debian = filled / "debian"
    source, package = paragraphs(debian / "control")
    assert source["Source"] == "lite-workbench" and package["Package"] == "lite-run"
    first, *more = package["Description"].splitlines()
    assert len(first) <= 80 and all(len(line) <= 80 for line in more)
    log = (debian / "changelog").read_text()
    assert log.startswith(f"lite-workbench ({__version__}) unstable; urgency=medium\n\n  * ")
    assert re.search(
        r"\n -- .+ <\S+@\S+>  \w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} \+0000\n", log
    )
    made = subprocess.run(
        ["make", "-n", "-f", "rules", "override_dh_auto_install"],
        cwd=debian, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in ("lite_run", "lite_run_opencl"):
        assert f"build/debian/{name}" in made.stdout
    if shutil.which("dpkg-parsechangelog"):
        subprocess.run(["dpkg-parsechangelog", "-l", debian / "changelog"], check=True)
