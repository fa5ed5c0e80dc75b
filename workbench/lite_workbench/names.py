"""The words that a Session and its parts speak: backends, and the versions of a model."""

BACKENDS = ("x86", "arm", "opencl", "reference")
FLOAT, INT8, MIXED = "float", "int8", "mixed"
#: A version with the precision of single layers set by hand.
CUSTOM = "custom"
