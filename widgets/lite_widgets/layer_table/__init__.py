"""Every layer as a table row."""

from .layer_table import LayerTable

__all__ = ["LayerTable"]
