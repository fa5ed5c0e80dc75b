"""TensorView: channels, histogram and figures of a tensor."""

from .detail import tensor_views
from .tensor_view import TensorView

__all__ = ["TensorView", "tensor_views"]
