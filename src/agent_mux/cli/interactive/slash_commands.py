"""Parse typed lines: a prompt, or a command that starts with a slash."""

from collections.abc import Mapping
from typing import NamedTuple

from agent_mux.cli.layout import wrap

SLASH = "/"
COMMANDS: Mapping[str, str] = {
    "exit": "end when the agent has finished; twice: at once",
    "quit": "same as /exit",
    "abort": "abort the run now",
    "interrupt": "interrupt the current turn (Ctrl-C)",
    "pause": "suspend all processes of the agent until /resume",
    "resume": "continue the suspended processes",
    "model": "NAME  use another model, at the latest from the next turn on",
    "mode": "MODE  change the approval mode: yolo, prompt, deny or plan",
    "status": "show the agent's state and pending requests",
    "cost": "show cost and tokens so far",
    "session": "show the session id and how to resume it later",
    "queue": "TEXT  send a prompt for a later turn of its own",
    "steer": "TEXT  send a message to the current turn",
    "help": "show this help",
}
_KEYS: Mapping[str, str] = {
    "//...": "a prompt that starts with a slash",
    "Ctrl-C": "interrupt the current turn; twice within a second: abort the run",
    "Ctrl-D": "on an empty line: /exit",
    "Alt-Enter": "new line in the prompt; Up: previous input",
}
_MEANING_COLUMN = 14
WITH_TEXT = frozenset({"mode", "model", "queue", "steer"})


class PromptText(NamedTuple):
    """A prompt for the agent."""

    text: str


class SlashCommand(NamedTuple):
    """A command for agent-mux, which may be unknown."""

    name: str
    text: str = ""


def parse_line(line: str) -> PromptText | SlashCommand | None:
    """Parse a line; None if it is empty. A double slash starts a prompt with one slash."""
    text = line.strip()
    if not text:
        return None
    if text.startswith(SLASH * 2):
        return PromptText(text[1:])
    if not text.startswith(SLASH):
        return PromptText(text)
    name, *rest = text[1:].split(maxsplit=1) or [""]
    return SlashCommand(name.lower(), rest[0] if rest else "")


def find_problem(command: SlashCommand) -> str | None:
    """Return why a command is invalid, or None."""
    if command.name not in COMMANDS:
        return f"unknown command /{command.name}; /help lists the commands, and // starts a prompt with a slash"
    if command.name in WITH_TEXT and not command.text:
        return f"/{command.name} requires a text"
    if command.name not in WITH_TEXT and command.text:
        return f"/{command.name} takes no text; // starts a prompt with a slash"
    return None


def help_text(width: int) -> str:
    """Return all commands and keys, one per line, with descriptions broken between words."""
    rows = {**{f"/{name}": what for name, what in COMMANDS.items()}, **_KEYS}
    return "\n".join(row for name, what in rows.items() for row in _help_rows(name, what, width))


def _help_rows(name: str, what: str, width: int) -> list[str]:
    first, *rest = wrap(what, max(width - _MEANING_COLUMN, 1))
    return [f"  {name}".ljust(_MEANING_COLUMN) + first, *(" " * _MEANING_COLUMN + row for row in rest)]
