"""NumPy references of the readings of outputs (engine/native/src/app), written on their own."""
