"""Newkind sorts a partly labelled pile of images into the known categories and the new ones it discovers."""

__all__ = ["__version__"]

__version__ = "0.1.0"
