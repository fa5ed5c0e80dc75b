"""Pipelines in the Workbench: a session over one, int8 stage by stage, and their tables."""
