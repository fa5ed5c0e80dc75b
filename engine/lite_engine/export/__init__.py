"""What goes to the device: model, runner, library, headers, bindings and samples that compile."""

from .android import export_android
from .application import export_application
from .exporter import (
    Exported,
    bytes_beside,
    check_programs,
    check_target,
    export_model,
    what_is,
)
from .swift import export_swift

__all__ = [
    "Exported",
    "bytes_beside",
    "check_programs",
    "check_target",
    "export_android",
    "export_application",
    "export_model",
    "export_swift",
    "what_is",
]
