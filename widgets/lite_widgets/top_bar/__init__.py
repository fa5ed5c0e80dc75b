"""Title, version and the running job."""

from .top_bar import TopBar

__all__ = ["TopBar"]
