"""The version of this package, as data: reading it from the installed metadata would cost a tenth of a second."""

__version__ = "0.1.0"
