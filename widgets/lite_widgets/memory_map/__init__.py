"""Where tensors lie in the arena, and for how long."""

from .memory_map import MemoryMap

__all__ = ["MemoryMap"]
