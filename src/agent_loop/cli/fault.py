"""What keeps the program from doing what it was started for. Light to import."""


class Fault(Exception):  # noqa: N818  # it is told as it is, and is nobody's base
    """Wrong usage: `str()` is the whole sentence."""
