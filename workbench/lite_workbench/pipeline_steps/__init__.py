"""The steps of a pipeline in the Workbench."""
