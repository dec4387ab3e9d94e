"""ULIDs: ids of 26 characters that sort by time. Importing `python-ulid` takes a tenth of the start of `amux run`."""

import os
import re
import time

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's Base32
_ULID = re.compile(f"[0-7][{_DIGITS}]{{25}}")  # 128 bits
_SHIFTS = range(125, -1, -5)  # 26 digits of 5 bits


def new_ulid() -> str:
    """Return a new ULID: the present time in milliseconds and 80 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    return ulid_from_bytes(milliseconds.to_bytes(6, "big") + os.urandom(10))


def ulid_from_bytes(value: bytes) -> str:
    """Return the ULID with this value of 16 bytes, the first six of which are a Unix time in milliseconds."""
    number = int.from_bytes(value, "big")
    return "".join([_DIGITS[number >> shift & 31] for shift in _SHIFTS])


def is_ulid(text: str) -> bool:
    """Return whether a text is a ULID in capital letters."""
    return _ULID.fullmatch(text) is not None
