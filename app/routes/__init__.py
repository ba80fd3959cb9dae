"""The HTTP door: each route parses, asks the engine, and encodes the answer."""
