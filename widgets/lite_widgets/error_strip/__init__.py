"""Do two runs agree: the error of every layer, and where in a layer it sits."""

from .detail import difference_detail
from .difference_pane import DifferencePane
from .error_strip import ErrorStrip

__all__ = ["DifferencePane", "ErrorStrip", "difference_detail"]
