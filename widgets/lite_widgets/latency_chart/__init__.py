"""Time per layer."""

from .latency_chart import LatencyChart

__all__ = ["LatencyChart"]
