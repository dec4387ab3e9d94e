"""Paths of a Hermes installation: the Python that it is installed in, and the directory of the selected profile.

The gateway is a Python module without a program of its own, so it needs the interpreter of the `hermes` program. The
only disk accesses: the first bytes of that program, whether a Python lies beside it, and the name of the profile.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath

from agent_mux.sdk.config import AgentPaths

HOME_VARIABLE = "HERMES_HOME"
_PROFILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""The names that `hermes profile create` accepts."""
_MAX_FIRST_LINE = 4096  # bytes; longer than the interpreter line of any system
_SHEBANG = re.compile(rb"#!\s*(/[^\n]*/python[0-9.]*)\s*\n")
# Installers write this where the path is too long for an interpreter line, or contains a space.
_SHEBANG_THROUGH_SHELL = re.compile(rb"#!\s*/bin/sh\s*\n'''exec' (?:'([^'\n]+)'|\"([^\"\n]+)\"|(/\S+)) \"\$0\"")
_PYTHON_NAMES = ("python", "python3", "python.exe")


def python_of(executable: str) -> str | None:
    """Return the interpreter of this `hermes` program; None when it cannot be determined."""
    python = interpreter_in(_first_bytes(executable))
    return python if python is not None else python_beside(executable)


def interpreter_in(script: bytes) -> str | None:
    """Return the Python named in the first lines of a script; None when it names none."""
    direct = _SHEBANG.match(script)
    if direct is not None:
        return direct[1].decode("utf-8", "surrogateescape").rstrip()
    through_shell = _SHEBANG_THROUGH_SHELL.match(script)
    if through_shell is None:
        return None
    path = next(group for group in through_shell.groups() if group is not None).decode("utf-8", "surrogateescape")
    return path if PurePath(path).name.startswith("python") else None


def python_beside(executable: str, exists: Callable[[Path], bool] = Path.exists) -> str | None:
    """Return the Python of the virtual environment that a program is installed in; None outside of one."""
    folder = Path(executable).resolve().parent
    if not exists(folder.parent / "pyvenv.cfg"):
        return None
    return next((str(folder / name) for name in _PYTHON_NAMES if exists(folder / name)), None)


def _first_bytes(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(_MAX_FIRST_LINE)
    except OSError:
        return b""


def profile_directory(place: AgentPaths) -> Path:
    """Return the directory of the profile that `hermes profile use` selected; it holds everything of that profile."""
    if place.directory is not None:
        return place.directory
    selected = selected_profile_directory(place.environ)
    return selected if selected is not None else place.home_of(HOME_VARIABLE, ".hermes")


def selected_profile_directory(environ: Mapping[str, str]) -> Path | None:
    """Return the directory of the selected profile; None without one, or where `HERMES_HOME` names a profile itself."""
    named, home = environ.get(HOME_VARIABLE, "").strip(), environ.get("HOME")
    root = Path(named) if named else Path(home or "", ".hermes")
    if root.parent.name == "profiles" or not (named or home):
        return None
    try:
        profile = (root / "active_profile").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):  # Hermes uses no profile then either
        return None
    return root / "profiles" / profile if _PROFILE_NAME.fullmatch(profile) and profile != "default" else None
