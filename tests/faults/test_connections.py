"""An ssh or adb whose n-th connection ends at byte k, silently or with an error: an error with its
stage, or the right numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.devices import open_address
from lite_engine.errors import DeviceError

from tests.small_models import classifier, image

pytestmark = pytest.mark.cpu
#: Both count their calls in $CUT/seen. The call of $CUT/at passes $CUT/bytes bytes in and out, and
#: ends with $CUT/status.
_COUNTED = """#!/bin/sh
n=$(($(cat "$CUT/seen") + 1)); echo $n > "$CUT/seen"; bytes=1000000000
[ $n != "$(cat "$CUT/at")" ] || { cut=1; bytes=$(cat "$CUT/bytes"); }
finish() { [ -z "$cut" ] || exit "$(cat "$CUT/status")"; exit "$1"; }
"""
TOOLS = {
    "ssh": (
        "ssh://board",
        """case " $* " in *" -O "*) exit 0 ;; esac
while [ "$1" != -- ]; do shift; done
cd "$CUT/home" && export HOME="$CUT/home"
[ -n "$cut" ] || exec sh -c "$3"
head -c "$bytes" | sh -c "$3" > "$CUT/out" 2> "$CUT/err"; status=$?
head -c "$bytes" "$CUT/out"; head -c "$bytes" "$CUT/err" >&2
finish $status
""",
    ),
    "adb": (
        "adb://0123",
        """there() { printf %s "$1" | sed "s#/data/local/tmp#$CUT/home#g"; }
shift 2; verb=$1; shift
case $verb in
  push) head -c "$bytes" "$1" > "$(there "$2")" ;;
  pull) head -c "$bytes" "$(there "$1")" > "$2" ;;
  shell) sh -c "$(there "$*")" > "$CUT/out" 2> "$CUT/err"; status=$?
    head -c "$bytes" "$CUT/out"; head -c "$bytes" "$CUT/err" >&2; finish $status ;;
esac
finish $?
""",
    ),
}


class Connection:
    """The tool of that name in PATH, and its state."""

    def __init__(self, tool: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, (self.address, script) = folder, TOOLS[tool]
        programs = folder / "programs"
        programs.mkdir()
        (folder / "home").mkdir()
        (programs / tool).write_text(_COUNTED + script)
        (programs / tool).chmod(0o755)
        monkeypatch.setenv("CUT", str(folder))
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        self.arm(0, 0, 0)

    def arm(self, at: int, size: int, status: int) -> None:
        for name, value in {"at": at, "bytes": size, "status": status, "seen": 0}.items():
            (self.folder / name).write_text(f"{value}\n")

    @property
    def seen(self) -> int:
        return int((self.folder / "seen").read_text())


def cut_at(
    connection: Connection, sizes: Iterable[int], statuses: Iterable[int], every: int
) -> tuple[int, int, int]:
    """(connections of a run, cuts, runs that ended with an error)."""
    model, feeds = optimize(classifier(), targets=["x86", "arm"]), image(classifier())
    wanted = Predictor(model, "reference").run(feeds)["prob"]
    predictor = Predictor(model, device=open_address(connection.address))
    predictor.run(feeds)  # the runner and the model are there
    connection.arm(0, 0, 0)
    np.testing.assert_allclose(predictor.run(feeds)["prob"], wanted, atol=1e-5)
    count, cuts, refused = connection.seen, 0, 0
    assert count > 2
    for n in range(1, count + 1, every):
        for size in sizes:
            for status in statuses:
                connection.arm(n, size, status)
                cuts += 1
                said = f"connection {n} of {count} ends at byte {size} with status {status}"
                try:
                    got = predictor.run(feeds)["prob"]
                except DeviceError as error:
                    assert error.stage and "\n" not in str(error), (said, error)
                    assert "Error" not in str(error), (said, error)
                    refused += 1
                else:
                    np.testing.assert_allclose(got, wanted, atol=1e-5, err_msg=said)
    connection.arm(0, 0, 0)
    np.testing.assert_allclose(predictor.run(feeds)["prob"], wanted, atol=1e-5)
    return count, cuts, refused


@pytest.mark.parametrize("tool", TOOLS)
def test_some_cuts(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, refused = cut_at(Connection(tool, tmp_path, monkeypatch), (9,), (0, 255), 3)
    assert refused > 2


#: Dense where texts are, sparse in arrays and profiles.
SIZES = [*range(64), *range(64, 600, 9), *range(600, 8000, 97)]
PARTS = 16


@pytest.mark.hours
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_byte(part: int, tool: str, tmp_path: Path, monkeypatch) -> None:
    """A part has each PARTS-th of the sizes, so that a campaign that is stopped has said much."""
    made = cut_at(Connection(tool, tmp_path, monkeypatch), SIZES[part::PARTS], (0, 1, 255), 1)
    print(f"{tool}: {made[0]} connections, {made[1]} cuts, {made[2]} refused")
