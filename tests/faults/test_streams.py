"""What comes from a device is cut at any byte, silently: an error with its stage, or the right
numbers, never others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.devices import RemoteDevice
from lite_engine.devices.remote import Answer
from lite_engine.errors import DeviceError

from tests.small_models import classifier, image

pytestmark = pytest.mark.cpu


class Cut:
    """A transport to this machine whose n-th transfer ends after a share of its bytes, with the
    status of success, as a broken pipe behind a shell looks."""

    name = "cut"

    def __init__(self, folder: Path) -> None:
        self.home = str(folder / "home")
        self.wanted, self.share, self.seen = 0, 0.0, 0

    def arm(self, n: int, share: float) -> None:
        self.wanted, self.share, self.seen = n, share, 0

    def _cut(self, data: bytes) -> bytes:
        self.seen += 1
        if self.seen != self.wanted:
            return data
        return data[: -1 if self.share == 1 else int(len(data) * self.share)]

    def call(self, command, timeout_s):
        done = subprocess.run(list(command), capture_output=True, timeout=timeout_s)
        return Answer(done.returncode, self._cut(done.stdout).decode(), done.stderr.decode())

    def push(self, local, remote, timeout_s):
        Path(remote).write_bytes(self._cut(Path(local).read_bytes()))
        return Answer(0, "", "")

    def pull(self, remote, local, timeout_s):
        Path(local).write_bytes(self._cut(Path(remote).read_bytes()))
        return Answer(0, "", "")


SHARES = (0, 0.01, 0.5, 1)


def cut_everywhere(folder: Path, shares: tuple[float, ...], every: int) -> tuple[int, int]:
    """(transfers of a run, runs that ended with an error)."""
    model, feeds = optimize(classifier(), targets=["x86", "arm"]), image(classifier())
    wanted = Predictor(model, "reference").run(feeds)["prob"]
    transport = Cut(folder)
    predictor = Predictor(model, device=RemoteDevice(transport))
    predictor.run(feeds)  # the runner is there
    transport.arm(0, 0)
    predictor.run(feeds)
    transfers, refused = transport.seen, 0
    assert transfers > 4
    for n in range(1, transfers + 1, every):
        for share in shares:
            transport.arm(n, share)
            try:
                got = predictor.run(feeds)["prob"]
            except DeviceError as error:
                assert error.stage and "\n" not in str(error) and "Error" not in str(error), error
                refused += 1
            else:
                np.testing.assert_allclose(got, wanted, atol=1e-5, err_msg=f"{n} at {share}")
    transport.arm(0, 0)
    np.testing.assert_allclose(predictor.run(feeds)["prob"], wanted, atol=1e-5)
    return transfers, refused


def test_some_cuts(tmp_path: Path) -> None:
    _, refused = cut_everywhere(tmp_path, (0, 0.5), 2)
    assert refused > 2


@pytest.mark.hours
def test_every_cut(tmp_path: Path, capsys) -> None:
    shares = tuple(i / 64 for i in range(65))
    transfers, refused = cut_everywhere(tmp_path, shares, 1)
    with capsys.disabled():
        print(f"\n{transfers} transfers, {transfers * len(shares)} cuts, {refused} refused")
