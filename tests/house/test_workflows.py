"""The workflows of .github: they run what exists, with the least permissions, and know no secret.

GitHub is not here to run them. What can be checked without it: every command, script, action and
artifact that a workflow names, and its rights.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="pip install 'lite-workbench[test]'")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
#: The only jobs that may write, and what: the site, and an identity to publish with.
WRITES = {
    ("docs.yml", "publish"): {"pages", "id-token"},
    ("release.yml", "publish"): {"id-token"},
}
#: One major version of an action, by the two owners that we trust.
ACTION = re.compile(r"actions/[a-z-]+@v\d+|pypa/gh-action-pypi-publish@release/v1")
RUNNER = re.compile(r"ubuntu-\d\d\.04(-arm)?|macos-\d\d(-intel)?|windows-(\d{4}|\d\d-arm)")
TARGET = re.compile(r"^([a-z-]+):.*##", re.M)


def load(path: Path) -> Any:
    # BaseLoader leaves every scalar a string: YAML 1.1 would read the key `on` as true.
    return yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)


WORKFLOWS = {path.name: load(path) for path in sorted(FOLDER.glob("*.yml"))}


def steps(workflow: Any) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job.get("steps", [])


def problems(name: str, workflow: Any) -> list[str]:
    """What is wrong with a workflow, one line each."""
    found = []
    if workflow.get("permissions") != {"contents": "read"}:
        found.append("permissions are not contents: read")
    if not workflow.get("concurrency", {}).get("group", "").startswith(name.removesuffix(".yml")):
        found.append("concurrency has no group of its own")
    if "pull_request_target" in workflow["on"]:
        found.append("pull_request_target runs foreign code with our permissions")
    for place, text in scalars(workflow):
        if re.search(r"\bsecrets\b|github\.token|password|api[-_]token", f"{place} {text}", re.I):
            found.append(f"{place} names a secret")
    for job_name, job in workflow["jobs"].items():
        rights = job.get("permissions", {})
        writes = (
            {k for k, v in rights.items() if v != "read"} if isinstance(rights, dict) else "all"
        )
        if writes != WRITES.get((name, job_name), set()):
            found.append(f"{job_name} may write {writes}")
        if "uses" in job:
            called = WORKFLOWS.get(job["uses"].removeprefix("./.github/workflows/"))
            if called is None or "workflow_call" not in called["on"]:
                found.append(f"{job_name} calls {job['uses']}")
            continue
        if "timeout-minutes" not in job:
            found.append(f"{job_name} has no timeout")
        found += [f"{job_name} runs on {r}" for r in runners(job) if not RUNNER.fullmatch(r)]
        for step in job["steps"]:
            found += [f"{job_name}: {text}" for text in step_problems(step)]
    return found


def scalars(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a document with the keys that lead to it."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from scalars(child, f"{place}.{key}")
    elif isinstance(value, list):
        for child in value:
            yield from scalars(child, place)
    else:
        yield place, value


def runners(job: Any) -> list[str]:
    if job["runs-on"] != "${{ matrix.runner }}":
        return [job["runs-on"]]
    matrix = job["strategy"]["matrix"]
    return matrix.get("runner") or [row["runner"] for row in matrix["include"]]


def step_problems(step: dict[str, Any]) -> list[str]:
    if "uses" in step:
        if not ACTION.fullmatch(step["uses"]):
            return [f"{step['uses']} is not an action with its major version"]
        keeps = step.get("with", {}).get("persist-credentials") != "false"
        if step["uses"].startswith("actions/checkout@") and keeps:
            return ["checkout leaves its credentials to later steps"]
        return []
    if "${{" in step["run"]:
        return ["an expression inside a script can inject code; pass it by env"]
    return [text for line in step["run"].splitlines() for text in command_problems(line)]


def command_problems(line: str) -> list[str]:
    """A command is a target of make, a verb of lite, a module, a file of the project or grep."""
    from lite_workbench.commands import available, get_command, parser_for

    first, *rest = shlex.split(line)
    if first == "make":
        known = set(TARGET.findall((ROOT / "Makefile").read_text()))
        return [f"make {t} does not exist" for t in rest if t not in known]
    if first == "lite":
        options = {w for w in rest if w.startswith("-")}
        if rest[0] in available():
            known = set(parser_for(get_command(rest[0]))._option_string_actions)
            return [f"lite {rest[0]} has no {o}" for o in sorted(options - known)]
        return [f"lite {rest[0]} does not exist"]
    if first == "python" and rest[0] == "-m":
        return [] if importlib.util.find_spec(rest[1]) else [f"python -m {rest[1]} does not exist"]
    if first == "grep":
        return [] if (ROOT / rest[-1]).is_file() else [f"{rest[-1]} does not exist"]
    return [] if os.access(ROOT / first, os.X_OK) else [f"{first} cannot be run"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_has_no_problem(name):
    assert problems(name, WORKFLOWS[name]) == []


def test_the_four_workflows_are_there():
    assert set(WORKFLOWS) == {"test.yml", "wheels.yml", "docs.yml", "release.yml"}
    assert runners(WORKFLOWS["test.yml"]["jobs"]["test"]) == ["ubuntu-24.04", "ubuntu-24.04-arm"]


def test_every_wheel_is_tested():
    targets = re.search(r'zig_targets="([^"]+)"', (ROOT / "scripts" / "wheel.sh").read_text())
    page = (ROOT / "docs" / "platforms.md").read_text()
    table = re.findall(r"^\| `(\w+)` \| \d{4}-\d\d-\d\d \|", page, re.M)
    matrix = WORKFLOWS["wheels.yml"]["jobs"]["test"]["strategy"]["matrix"]
    assert sorted(row["wheel"] for row in matrix["include"]) == sorted(table)
    assert len(table) == len(["x86_64", "aarch64", *targets[1].split()])


def test_only_a_tag_publishes_and_only_after_the_tests():
    release = WORKFLOWS["release.yml"]
    assert release["on"] == {"push": {"tags": ["v*"]}}
    assert set(release["jobs"]["publish"]["needs"]) == {"test", "wheels"}
    users = [n for n, w in WORKFLOWS.items() if any("pypa/" in s.get("uses", "") for s in steps(w))]
    assert users == ["release.yml"]
    # The publishing job runs nothing of ours: whoever changes a script does not get its rights.
    assert not any("run" in step for step in release["jobs"]["publish"]["steps"])


def test_the_documentation_is_published_from_the_main_branch():
    docs = WORKFLOWS["docs.yml"]
    assert docs["on"]["push"] == {"branches": ["main"]}
    assert docs["jobs"]["publish"]["if"] == "github.event_name == 'push'"


def test_what_is_downloaded_was_uploaded():
    named: dict[str, set[str]] = {"upload": set(), "download": set()}
    for step in (step for workflow in WORKFLOWS.values() for step in steps(workflow)):
        if match := re.match(r"actions/(upload|download)-artifact@", step.get("uses", "")):
            named[match.group(1)].add(step["with"]["name"])
    assert named["download"] == named["upload"] == {"dist"}


def test_tools_that_tests_require_are_known():
    from tests.tools import TOOLS

    for row in WORKFLOWS["test.yml"]["jobs"]["test"]["strategy"]["matrix"]["include"]:
        assert set(row["require"].split(",")) <= set(TOOLS)


def changed(*place: str, value: Any) -> Any:
    """test.yml with one value replaced."""
    workflow = copy.deepcopy(WORKFLOWS["test.yml"])
    inner = workflow
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return workflow


STEPS = ("jobs", "test", "steps")


@pytest.mark.parametrize(
    ("workflow", "said"),
    [
        (changed("permissions", value="write-all"), "permissions are not"),
        (changed("concurrency", value={"group": "all"}), "no group of its own"),
        (changed("on", value={"pull_request_target": ""}), "pull_request_target"),
        (changed("jobs", "test", "permissions", value={"contents": "write"}), "may write"),
        (changed("jobs", "test", "permissions", value="write-all"), "may write"),
        (changed("jobs", "test", "runs-on", value="ubuntu-latest"), "runs on ubuntu-latest"),
        (changed("jobs", "other", value={"uses": "./.github/workflows/docs.yml"}), "calls"),
        (changed("env", value={"KEY": "${{ secrets.KEY }}"}), "names a secret"),
        (changed(*STEPS, value=[{"uses": "actions/checkout@v6"}]), "credentials"),
        (changed(*STEPS, value=[{"uses": "actions/cache@main"}]), "major version"),
        (changed(*STEPS, value=[{"uses": "someone/action@v1"}]), "major version"),
        (changed(*STEPS, value=[{"run": "make ${{ github.head_ref }}"}]), "inject"),
        (changed(*STEPS, value=[{"run": "make test everything"}]), "make everything"),
        (changed(*STEPS, value=[{"run": "scripts/gone.sh"}]), "cannot be run"),
        (changed(*STEPS, value=[{"run": "lite docter"}]), "lite docter does not exist"),
        (changed(*STEPS, value=[{"run": "lite doctor --heal"}]), "has no --heal"),
    ],
)
def test_a_problem_is_found(workflow, said):
    assert any(said in text for text in problems("test.yml", workflow))


FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_is_complete(path):
    form = load(path)
    assert {"name", "description", "labels", "body"} == set(form)
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field.get("validations") == {"required": "true"} for field in fields)


def test_forms_ask_for_the_output_of_doctor():
    asked = {"bug": "lite doctor --json -", "device": "lite doctor --field-report report.json"}
    assert {path.stem for path in FORMS} == {*asked, "model_refused"}
    for name, command in asked.items():
        assert f"`{command}`" in (FORMS[0].parent / f"{name}.yml").read_text()
