"""Output of the commands that print and exit."""

import sys

from agent_loop.cli.errors import OutputError


def print_text(text: str) -> None:
    """Print text to standard output. Raises `BrokenPipeError` if its reader is gone, else `OutputError`."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error) from None
