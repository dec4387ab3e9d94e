"""Where the Python is that Hermes is installed in: the gateway is a module of it, without a program of its own.

Pure but for two looks at the disk: the first lines of the `hermes` program, and whether there is a Python beside it.
"""

import re
from collections.abc import Callable
from pathlib import Path, PurePath

LOOK = 4096  # bytes; more than any system takes of a first line
_DIRECT = re.compile(rb"#!\s*(/[^\n]*/python[0-9.]*)\s*\n")
# What installers write where the path is too long for a first line, or holds a space.
_THROUGH_SHELL = re.compile(rb"#!\s*/bin/sh\s*\n'''exec' (?:'([^'\n]+)'|\"([^\"\n]+)\"|(/\S+)) \"\$0\"")
_NAMES = ("python", "python3", "python.exe")


def python_of(executable: str) -> str | None:
    """The interpreter of this installation; None when it cannot be known."""
    said = interpreter_in(first_bytes(executable))
    return said if said is not None else python_beside(executable)


def interpreter_in(script: bytes) -> str | None:
    """The Python that runs this script."""
    direct = _DIRECT.match(script)
    if direct is not None:
        return direct[1].decode("utf-8", "surrogateescape").rstrip()
    through = _THROUGH_SHELL.match(script)
    if through is None:
        return None
    path = next(group for group in through.groups() if group is not None).decode("utf-8", "surrogateescape")
    return path if PurePath(path).name.startswith("python") else None


def first_bytes(path: str) -> bytes:
    """The beginning of a file; nothing when it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(LOOK)
    except OSError:
        return b""


def python_beside(executable: str, exists: Callable[[Path], bool] = Path.exists) -> str | None:
    """A virtual environment keeps its Python beside the programs that were installed into it."""
    folder = Path(executable).resolve().parent
    if not exists(folder.parent / "pyvenv.cfg"):
        return None
    return next((str(folder / name) for name in _NAMES if exists(folder / name)), None)
