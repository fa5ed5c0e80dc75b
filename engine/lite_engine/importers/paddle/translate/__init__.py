"""Paddle operators → ONNX-semantics operators, one module per family.

Importing this package fills the table of `registry`.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
