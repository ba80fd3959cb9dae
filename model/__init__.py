"""Transformers in plain PyTorch that can be looked into; knows nothing of the web and imports no torch."""

__version__ = "0.1.0"
