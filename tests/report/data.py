"""What a report's page holds for its widgets."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any


def data_of(page: str) -> dict[str, Any]:
    """The decompressed values and mounts. Raises ValueError for what JSON does not have."""
    found = re.search(r'<script type="text/plain" id="lite-data">(.*?)</script>', page)
    assert found is not None
    data = gzip.decompress(base64.b64decode(found[1]))
    made: dict[str, Any] = json.loads(data, parse_constant=_refuse)
    return made


def _refuse(constant: str) -> None:
    raise ValueError(constant)
