"""The file by which the directory of a service says that requests need a token.

Tokens are rows of a database. If that is removed, emptied or exchanged, nothing in it says that there were any. The
file outlives it, so that a service that once needed a token never answers without one until somebody says so.
"""

import os
from pathlib import Path

from agent_mux._util.files import remove, write_text

MARK_FILE = "needs-token"
_TEXT = "This service needs a token. `amux tokens allow-none` removes this file once no token is left.\n"


class TokenMark:
    """The mark in the directory of a service."""

    def __init__(self, directory: Path) -> None:
        """`directory`: that of the service, which need not exist yet."""
        self.path = directory / MARK_FILE

    @property
    def is_set(self) -> bool:
        """Whether the file exists, whatever it is."""
        return os.path.lexists(self.path)

    def set(self) -> None:
        """Create the file, readable for its owner only. Raises CONFIG_ERROR."""
        if not self.is_set:
            write_text(self.path, _TEXT)

    def clear(self) -> None:
        """Remove the file: without tokens, the service admits local callers again. Raises CONFIG_ERROR."""
        remove(self.path)
