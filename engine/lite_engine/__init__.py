"""Lite Engine: model file → numbers, on ARM, x86 and OpenCL."""
