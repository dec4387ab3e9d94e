"""The version of this package. It is a constant because reading the installed metadata takes a tenth of a second."""

__version__ = "0.1.0"
