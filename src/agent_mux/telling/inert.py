"""Text of an agent, made harmless. All of it is hostile: it can come from any web page or file the agent read.

Escape sequences can retitle a window, write to the clipboard, answer for the user, or hide a command that is about to
be approved; so can carriage returns, backspaces and bidirectional overrides.
"""

import re

# ECMA-48: CSI, and the strings OSC, DCS, SOS, PM, APC with their end. An unfinished one loses its introducer only:
# the rest is harmless text, and may be text indeed.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    # Stops at the next introducer: many of them must not cost quadratic time.
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9b-\x9f]*(?:\x07|\x1b\\|\x9c)"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
_BLANKS = re.compile(r"\s+")


def sanitize(text: str) -> str:
    r"""Keep text, tabs and newlines; drop escape sequences, C0 and C1 controls, and bidirectional overrides."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub("", _SEQUENCES.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, width: int) -> str:
    """The text on one line, cut to `width` characters with an ellipsis."""
    flat = _BLANKS.sub(" ", sanitize(text[: width * 8])).strip()
    return flat if len(flat) <= width else flat[: max(width - 1, 0)] + "…"
