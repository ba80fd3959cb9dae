"""The web application, the command line and the notebook door over `model`."""

__version__ = "0.1.0"
