"""Hand-overs between backends, precisions or layouts."""

from .transition_matrix import TransitionMatrix

__all__ = ["TransitionMatrix"]
