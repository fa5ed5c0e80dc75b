"""The list of devices: many writers, none lost; and their addresses."""

from __future__ import annotations

import subprocess
import sys

import pytest
from lite_engine import settings
from lite_engine.devices.registry import load_entries, open_address
from lite_engine.errors import UsageError

ADD = "import sys; from lite_engine.devices.registry import add_entry; add_entry(sys.argv[1], 'ssh://host')"


def test_devices_added_at_once_are_all_kept(tmp_path) -> None:
    import os

    names = [f"board-{i}" for i in range(6)]
    env = {**os.environ, "LITE_CACHE_DIR": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", ADD, n], env=env) for n in names]
    assert [p.wait(60) for p in running] == [0] * len(names)
    with settings.override(LITE_CACHE_DIR=str(tmp_path)):
        assert sorted(e.name for e in load_entries()) == names


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_a_port_has_sixteen_bits(port: str) -> None:
    with pytest.raises(UsageError, match="is not of the form ssh://"):
        open_address(f"ssh://me@board:{port}")
