"""Backends of other packages: the contract, the search for them, and the guard around them."""

from .adapter import PluginBackend
from .contract import (
    CONTRACT,
    BackendPlugin,
    Borders,
    Cached,
    CompiledGraph,
    Estimates,
    Portable,
    Precisions,
    Tapped,
    Timed,
)
from .file_backend import FileBackend
from .subgraph import graph_of

__all__ = [
    "CONTRACT",
    "BackendPlugin",
    "Borders",
    "Cached",
    "CompiledGraph",
    "Estimates",
    "FileBackend",
    "PluginBackend",
    "Portable",
    "Precisions",
    "Tapped",
    "Timed",
    "graph_of",
]
