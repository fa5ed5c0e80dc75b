"""The distributions of engine/plugins can be imported without being installed."""

import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "engine/plugins"
sys.path += [str(path) for path in sorted(FOLDER.glob("lite-backend-*"))]
