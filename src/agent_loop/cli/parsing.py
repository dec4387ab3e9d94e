"""The argument parser of all commands of `amux-agent`."""

import argparse
from typing import Any, NoReturn

from agent_loop.cli.errors import UsageError
from agent_loop.cli.printing import print_text


class CommandParser(argparse.ArgumentParser):
    """An `ArgumentParser` that raises `UsageError`, and the error of an output that cannot be written."""

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` with the command whose help to see."""
        raise UsageError(f"{message}; see `{self.prog} --help`")

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ARG002  # argparse prints usage errors only to standard error
        """Print the help or the version. Raises errors of the output, which the overridden method ignores."""
        print_text(message)
