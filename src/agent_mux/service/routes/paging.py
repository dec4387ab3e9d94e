"""Where a page of a listing ends, as one word that clients hand back: a time, and the id of what was last."""

import base64
import binascii

from agent_mux.errors import FieldError, ValidationError


def cursor_of(time: int, id_: str) -> str:
    """The `next` of a page. `time`: milliseconds since the epoch."""
    return base64.urlsafe_b64encode(f"{time}.{id_}".encode()).decode()


def place_of(cursor: str) -> tuple[int, str]:
    """Time and id in a cursor. Raises `ValidationError` for what is none."""
    try:
        said = base64.urlsafe_b64decode(cursor.encode()).decode()
    except (ValueError, binascii.Error):
        said = ""
    time, _, id_ = said.partition(".")
    if not (time.isascii() and time.isdigit() and len(time) <= 15) or "\0" in id_:
        raise ValidationError([FieldError("(cursor)", cursor, "the `next` of the page before")])
    return int(time), id_
