"""Figures as images: kaleido draws them in a browser; one line says which of them is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

from lite_messages import tr

from ..errors import LiteError


@cache
def figure_class(base: type[Any]) -> type[Any]:
    """`plotly.graph_objects.Figure` with one line of error for what images need."""

    class Figure(base):  # type: ignore[misc]
        def to_image(self, *args: Any, **options: Any) -> bytes:
            with _told():
                return super().to_image(*args, **options)

        def write_image(self, *args: Any, **options: Any) -> None:
            with _told():
                super().write_image(*args, **options)

    return Figure


@contextmanager
def _told() -> Iterator[None]:
    """Raises LiteError for a missing kaleido or browser; what else goes wrong is plotly's."""
    if find_spec("kaleido") is None:
        raise LiteError(tr("images of figures need kaleido"), command="pip install 'kaleido>=1'")
    try:
        yield
    except RuntimeError as error:
        if "Chrome" not in str(error):
            raise
        raise LiteError(
            tr("images of figures need Chrome or Chromium"),
            fix=tr("install one, or name it in BROWSER_PATH"),
        ) from None
