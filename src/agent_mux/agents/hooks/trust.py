"""Which files of projects somebody has read and trusted: by their path and what they say.

A repository can bring a `hooks.json`, and so programs that would run as soon as an agent works in it. So the file of a
project counts only as long as it says what it said when it was trusted; what we write ourselves into a file that was
trusted stays so.
"""

import hashlib
import json
import os
from pathlib import Path

from agent_mux._util.files import locked, read_text, write_text
from agent_mux.errors import AgentMuxError

FILE_NAME = "trusted-hooks.json"


def is_trusted(path: Path, own: Path) -> bool:
    """It says what it said when somebody trusted it. `own`: the global directory. Raises CONFIG_ERROR."""
    return _known(own).get(os.path.realpath(path)) == _fingerprint(path)


def trust(path: Path, own: Path) -> None:
    """Trust a file as it is now. Raises CONFIG_ERROR, CONFIG_LOCK_ERROR."""
    book = own / FILE_NAME
    with locked(book, locks=own / "locks"):
        known = {**_known(own), os.path.realpath(path): _fingerprint(path)}
        write_text(book, json.dumps(known, indent=2, sort_keys=True) + "\n")


def _fingerprint(path: Path) -> str:
    return hashlib.sha256((read_text(path) or "").encode()).hexdigest()


def _known(own: Path) -> dict[str, str]:
    book = own / FILE_NAME
    try:
        known = json.loads(read_text(book) or "{}")
    except ValueError as error:
        raise AgentMuxError("CONFIG_ERROR", f"{book} is not JSON; remove it, and trust your projects again") from error
    return known if isinstance(known, dict) else {}
