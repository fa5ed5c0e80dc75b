"""The Binder files, checked as far as it goes without Docker."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest


def lines(path) -> list[str]:
    text = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in text if line]


def test_scripts_can_run(root):
    for name in ("postBuild", "start"):
        script = root / "binder" / name
        assert os.access(script, os.X_OK), f"{name} is not executable"
        subprocess.run(["bash", "-n", script], check=True)
    assert 'exec "$@"' in (root / "binder" / "start").read_text()


def test_every_program_opens_lesson_1(root):
    """`jupyter lab` takes LabApp's address before the server's."""
    text = (root / "binder" / "postBuild").read_text()
    config = json.loads(text.partition("<< 'END'\n")[2].partition("\nEND")[0])
    opens = {app: config[app]["default_url"] for app in ("ServerApp", "LabApp")}
    assert set(opens.values()) == {"/lab/tree/notebooks/01_first_walk.ipynb"}
    assert (root / "notebooks" / "01_first_walk.ipynb").exists()


def test_requirements_are_the_repository_with_known_extras(root):
    pinned, line = lines(root / "binder" / "requirements.txt")
    assert pinned == "-c constraints.txt"
    extras = re.fullmatch(r"\.\[(.+)\]", line).group(1).split(",")
    pyproject = (root / "pyproject.toml").read_text()
    table = pyproject.split("[project.optional-dependencies]")[1].split("\n[")[0]
    assert set(extras) <= set(re.findall(r"^(\w+) = \[", table, re.M))
    # An environment.yml would make repo2docker ignore requirements.txt.
    assert not (root / "binder" / "environment.yml").exists()


def test_every_package_is_pinned_without_an_address(root):
    """What the project and its extras name is in the list, once, with one version."""
    pins = lines(root / "binder" / "constraints.txt")
    found = [re.fullmatch(r"([a-z0-9-]+)==[A-Za-z0-9.+!]+", pin).group(1) for pin in pins]
    assert found == sorted(set(found))
    pyproject = (root / "pyproject.toml").read_text()
    tables = pyproject.split("\ndependencies = [")[1].split("\n[project.scripts]")[0]
    tables = re.sub(r"^bench = .*$", "", tables, flags=re.M)  # other engines
    named = re.findall(r'"([A-Za-z0-9-]+)[<>=~]', tables)
    assert len(named) > 15 and {n.lower() for n in named} <= set(found)


def test_python_version_is_one_we_support(root):
    (line,) = lines(root / "binder" / "runtime.txt")
    major, minor = re.fullmatch(r"python-(\d+)\.(\d+)", line).groups()
    least = re.search(r'requires-python = ">=(\d+)\.(\d+)"', (root / "pyproject.toml").read_text())
    assert (int(major), int(minor)) >= tuple(map(int, least.groups()))


def test_apt_names_are_plain_sorted_packages(root):
    names = lines(root / "binder" / "apt.txt")
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name) for name in names)
    assert names == sorted(names)


def test_repo2docker_accepts_the_folder(root, tmp_path):
    """Its Dockerfile installs our packages, requirements and scripts. Needs no Docker."""
    if importlib.util.find_spec("repo2docker") is None:
        pytest.skip("no repo2docker; pip install jupyter-repo2docker")
    # It looks at the folder's files only: a copy without the environments and builds is quick.
    (tmp_path / "binder").symlink_to(root / "binder")
    (tmp_path / "pyproject.toml").symlink_to(root / "pyproject.toml")
    done = subprocess.run(
        [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    text = done.stdout + done.stderr
    assert done.returncode == 0, text[-2000:]
    version = lines(root / "binder" / "runtime.txt")[0].removeprefix("python-")
    assert f"python={version}" in text
    assert " ".join(lines(root / "binder" / "apt.txt")) in text
    for step in ('-r "binder/requirements.txt"', "./binder/postBuild", "binder/start"):
        assert step in text
