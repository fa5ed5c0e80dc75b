"""The Workbench's steps for one model, in order."""

STEPS = ("Model", "Check", "Target", "Convert", "Quantize", "Run", "Evaluate", "Profile", "Compare",
         "Deploy")  # fmt: skip
