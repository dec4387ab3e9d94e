"""What a person types: a prompt, or a command that begins with a slash."""

from collections.abc import Mapping
from typing import NamedTuple

SLASH = "/"
COMMANDS: Mapping[str, str] = {
    "exit": "leave when the agent has done what it was asked; twice: at once",
    "quit": "the same as /exit",
    "abort": "end the run now",
    "interrupt": "stop the turn that runs (Ctrl-C)",
    "pause": "stop all processes of the agent until /resume",
    "resume": "let them go on",
    "status": "what the agent is doing, and what it waits for",
    "cost": "what was spent so far",
    "session": "the id of the session, and how to continue it later",
    "queue": "TEXT  a prompt behind all others, for a turn of its own",
    "steer": "TEXT  a message for the turn that runs",
    "help": "this",
}
_KEYS = (
    "  //...       a prompt that begins with a slash",
    "  Ctrl-C      stop the turn that runs; twice within a second: end the run",
    "  Ctrl-D      on an empty line: /exit",
    "  Alt-Enter   a new line in the prompt; Up: what was typed before",
)
WITH_TEXT = frozenset({"queue", "steer"})


class PromptText(NamedTuple):
    """Something for the agent."""

    text: str


class SlashCommand(NamedTuple):
    """Something for the mux. It may not exist."""

    name: str
    text: str = ""


def parse_line(line: str) -> PromptText | SlashCommand | None:
    """What the line says; None when it says nothing. A second slash makes a prompt that begins with one."""
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
    """Why a command cannot be carried out as it was typed, as a sentence; None: it can."""
    if command.name not in COMMANDS:
        return f"there is no command /{command.name}; /help shows them, and // begins a prompt with a slash"
    if command.name in WITH_TEXT and not command.text:
        return f"/{command.name} wants a text"
    if command.name not in WITH_TEXT and command.text:
        return f"/{command.name} takes no text; // begins a prompt with a slash"
    return None


def help_text() -> str:
    """All commands, one on a line."""
    lines = [f"  /{name:<10} {what}" for name, what in COMMANDS.items()]
    return "\n".join((*lines, *_KEYS))
