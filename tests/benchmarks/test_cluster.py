"""The benchmark of worker processes runs; what it measures needs a quiet machine."""

from __future__ import annotations

import json

import pytest

from benchmarks import cluster

pytestmark = [pytest.mark.cpu, pytest.mark.slow]
pytest.importorskip("distributed", reason="pip install 'lite-workbench[cluster]'")


def test_it_runs_on_a_tiny_size(tmp_path):
    out = tmp_path / "out.json"
    made = cluster.main(["--network", "squeezenet", "--images", "4", "--repeat", "1",
                         "--part", "25000", "--json", str(out)])  # fmt: skip
    assert set(cluster.LIMITS) <= set(made) and min(made[key] for key in cluster.LIMITS) > 0
    assert made["imagenet"]["inferences"] == 2 * cluster.VERSIONS * cluster.DEVICES
    assert made["imagenet"]["whole_hours"] == pytest.approx(
        made["imagenet"]["seconds"] * 25000 / 3600
    )
    assert json.loads(out.read_text())["environment"]["cpu"]
