"""What goes to the device: model, runner, library, headers, bindings and samples that compile."""

from .android import export_android
from .application import export_application
from .exporter import Exported, export_model, what_is

__all__ = ["Exported", "export_android", "export_application", "export_model", "what_is"]
