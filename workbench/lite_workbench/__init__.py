"""Lite Workbench: from a trained model to a board, inside JupyterLab."""
