"""Small models written field by field, imported from a file."""

from __future__ import annotations

import pytest
from lite_engine.importers import load

from tests.importers.tiny_tensorflow import graph_def


@pytest.fixture
def tensorflow_imported(tmp_path):
    def make(nodes, functions=(), **options):
        path = tmp_path / "graph.pb"
        path.write_bytes(graph_def(nodes, functions))
        return load(path, **options)

    return make


@pytest.fixture
def tflite_imported(tmp_path):
    def make(data: bytes):
        path = tmp_path / "model.tflite"
        path.write_bytes(data)
        return load(path)

    return make
