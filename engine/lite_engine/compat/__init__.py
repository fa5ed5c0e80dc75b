"""Other people's interfaces on our engine: Paddle-Lite's Python API and its `opt` command."""
