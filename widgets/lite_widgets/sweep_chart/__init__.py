"""Latency against throughput of measured combinations."""

from .sweep_chart import SweepChart

__all__ = ["SweepChart"]
