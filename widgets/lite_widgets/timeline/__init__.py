"""A run's threads, queue and backends over time."""

from .timeline import Timeline

__all__ = ["Timeline"]
