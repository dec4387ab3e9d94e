"""Make text and values from agents safe to print and to encode.

Everything that an agent prints is hostile: escape sequences can retitle a window, write to the clipboard or hide a
command that waits for approval; carriage returns, backspaces and bidirectional overrides can do the same. Unpaired
surrogates and values nested too deeply cannot be encoded as JSON.
"""

import re
from typing import Any

import msgspec

# ECMA-48: CSI, and the strings OSC, DCS, SOS, PM, APC with their terminator. Of an unterminated one only the introducer
# is removed: the rest is harmless and may be ordinary text.
_SEQUENCES = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    # Stops at the next introducer, so that many of them do not take quadratic time.
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9b-\x9f]*(?:\x07|\x1b\\|\x9c)"
)
_HIDING = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""Controls, bidirectional marks, and most characters without a width."""
_LETTER_OR_EMOJI = f"[^\x00-\xa0\u2000-\u200f{_HIDING}]"
_REMOVED = (
    f"[{_HIDING}]"
    # Joiners shape emoji and the letters of some scripts, and the last two selectors emoji: elsewhere they only hide.
    f"|[\u200c\u200d](?!{_LETTER_OR_EMOJI})|(?<!{_LETTER_OR_EMOJI})[\u200c\u200d]"
    f'|(?<![^\x00-"$-)+-/:-\xa8\u200b-\u200f\ufe00-\ufe0f])[\ufe0e\ufe0f]'
)
_INVISIBLE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls, bidirectional marks, and characters without a width: Unicode's `Default_Ignorable_Code_Point`."""
_BLANKS = r"\s+"


def sanitize(text: str) -> str:
    r"""Remove escape sequences, controls, bidirectional marks and invisible characters; keep tabs and newlines."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_REMOVED, "", re.sub(_SEQUENCES, "", text.replace("\r\n", "\n")))


def reveal(text: str) -> str:
    r"""Replace each character that is invisible or controls a terminal by its code point, such as `<U+001B>`.

    Tabs and newlines are kept. For texts about which a person decides: what is removed would be decided about, too.
    """
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_INVISIBLE, lambda found: f"<U+{ord(found[0]):04X}>", text.replace("\r\n", "\n"))


def escape_invisible(text: str) -> str:
    r"""Return the same JSON with characters that are invisible or control a terminal written as `\uXXXX`."""
    if text.isascii() and "\x7f" not in text:
        return text
    return re.sub(_INVISIBLE, _json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def one_line(text: str, width: int) -> str:
    """Return the text on one line, cut to `width` characters with an ellipsis."""
    flat = re.sub(_BLANKS, " ", sanitize(text[: width * 8])).strip()
    return flat if len(flat) <= width else flat[: max(width - 1, 0)] + "…"


MAX_DEPTH = 100  # well below the recursion limit of the encoder, from any call depth
_SURROGATE = "[\ud800-\udfff]"


def replace_surrogates(text: str) -> str:
    """Replace each unpaired surrogate with U+FFFD."""
    return text if text.isascii() else re.sub(_SURROGATE, "\ufffd", text)


def sanitize_unicode(value: Any, depth: int = 0) -> Any:
    """Return a copy of a plain value or an event that can be encoded as JSON; `depth` is its own nesting depth."""
    match value:
        case str():
            return replace_surrogates(value)
        case list() | tuple() | dict() | msgspec.Struct() if depth >= MAX_DEPTH:
            return "(nested too deeply)"
        case list() | tuple():
            return [sanitize_unicode(item, depth + 1) for item in value]
        case dict():
            return {sanitize_unicode(key, depth + 1): sanitize_unicode(item, depth + 1) for key, item in value.items()}
        case msgspec.Struct():
            return type(value)(
                **{name: sanitize_unicode(getattr(value, name), depth + 1) for name in value.__struct_fields__}
            )
    return value


def to_json_bytes(value: Any) -> bytes:
    """Encode plain values as compact JSON. Values that cannot be encoded are sanitized first."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return msgspec.json.encode(sanitize_unicode(value))


def to_json(value: Any) -> str:
    """Encode as `to_json_bytes`, and return text."""
    return to_json_bytes(value).decode()
