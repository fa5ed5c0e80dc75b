"""What goes to the device."""

from .bundle_list import BundleList

__all__ = ["BundleList"]
