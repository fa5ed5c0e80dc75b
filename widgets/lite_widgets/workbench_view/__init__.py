"""The frame of the Workbench: top bar, stepper, the body of each step, code drawer."""

from .workbench_view import PicturedBox, Tabbed, WorkbenchView, columns

__all__ = ["PicturedBox", "Tabbed", "WorkbenchView", "columns"]
