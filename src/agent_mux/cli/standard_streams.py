"""Standard streams as the parent process left them: closed, or with an encoding that lacks characters."""

import codecs
import os
import sys


def prepare_streams() -> None:
    """Open closed standard streams on the null device; replace characters that a terminal cannot encode."""
    codecs.register_error("similar", _similar_characters)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the parent process closed it
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest free one, which is that of the stream
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))  # open until exit
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="similar")


_LINES = {"─": "-", "━": "-", "═": "-", "│": "|", "┃": "|", "║": "|", "█": "#", "…": "~"}


def _similar_characters(error: UnicodeError) -> tuple[str, int]:
    """Replace lines of tables with similar ASCII characters, everything else with `?`. A handler for `codecs`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_LINES.get(one, "?") for one in error.object[error.start : error.end]), error.end
