"""Accuracy against latency."""

from .trade_off import TradeOff

__all__ = ["TradeOff"]
