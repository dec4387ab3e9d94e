"""Which directory Hermes works with: each of its profiles has one of its own, with everything in it."""

import re
from collections.abc import Mapping
from pathlib import Path

from agent_mux.place import Place

VARIABLE = "HERMES_HOME"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""What `hermes profile create` takes."""


def directory(place: Place) -> Path:
    """The directory of the profile that `hermes profile use` chose."""
    if place.directory is not None:
        return place.directory
    chosen = chosen_directory(place.environ)
    return chosen if chosen is not None else place.home_of(VARIABLE, ".hermes")


def chosen_directory(environ: Mapping[str, str]) -> Path | None:
    """That of the chosen profile; None where none is chosen. What the variable names a profile with counts more."""
    named, home = environ.get(VARIABLE, "").strip(), environ.get("HOME")
    root = Path(named) if named else Path(home or "", ".hermes")
    if root.parent.name == "profiles" or not (named or home):
        return None
    try:
        profile = (root / "active_profile").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):  # as Hermes has it: then there is none
        return None
    return root / "profiles" / profile if _NAME.fullmatch(profile) and profile != "default" else None
