"""The cell that opens the Workbench, and its steps for one model, in order."""

STEPS = ("Model", "Check", "Target", "Convert", "Quantize", "Run", "Evaluate", "Profile", "Compare",
         "Deploy")  # fmt: skip


def workbench_cell(model: str) -> str:
    """The cell that opens the Workbench on a file beside the notebook."""
    return f"import lite_workbench as lw\nworkbench = lw.Workbench({model!r})\nworkbench"
