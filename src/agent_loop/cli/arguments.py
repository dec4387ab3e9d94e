"""The command line of `amux-agent`: one prompt, and a flag for each field of the command `start`.

This module imports little, because `--help` needs nothing else.
"""

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_loop.cli.errors import UsageError
from agent_loop.cli.parsing import CommandParser
from agent_mux._util.version import __version__

DESCRIPTION = "Run a coding agent in the current directory."
COMMANDS = {
    "amux-agent agents": "list the agents for --agent",
    "amux-agent mcp list": "list the MCP servers of all sessions; also: add, remove",
    "amux-agent sessions": "list the sessions for --session",
    "amux-agent sessions ID": "print the conversation of a session",
    "amux-agent tool-host": "execute the tools of an agent that runs elsewhere (for programs)",
}
NOTE = (
    "Models are named provider:model (anthropic:..., openai:..., scripted:PATH, replay:PATH); API keys are read from "
    "the environment. Exit codes: 0 success, 1 failed run, 2 usage error, 5 no API key, 130 interrupted, "
    "141 the reader of standard output is gone."
)
_COMMAND_COLUMN = 30
_NARROWEST_TEXT = 20  # columns for the descriptions of commands; below it, they begin on a new line


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parsed command line, with `start` fields kept apart from other options."""

    prompt: str | None
    """The prompt; None: read it from standard input."""
    control: bool
    as_json: bool
    images: tuple[str, ...]
    """The paths of the images for the prompt."""
    base_url: str | None
    flags: dict[str, Any]
    """The fields of `start` for which flags were given."""
    system_prompt_file: str | None
    output_schema_file: str | None


MODES: Mapping[str, Mapping[str, Any]] = {
    "plan": {"approval_mode": "plan"},
    "accept-edits": {"approval_mode": "prompt", "accept_edits": True},
    "ask": {"approval_mode": "prompt"},
    "yolo": {"approval_mode": "yolo"},
}
"""The fields of `start` for each value of --mode."""


class _HelpFormatter(argparse.HelpFormatter):
    """Formats the description and `_epilog` in the width of the terminal: each line is a paragraph or a command."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:  # noqa: ARG002  # never indented here
        return "\n".join(line for paragraph in text.split("\n") for line in _wrapped(paragraph, width))


def _wrapped(paragraph: str, width: int) -> list[str]:
    name, _, meaning = paragraph.partition("\t")
    if not meaning:
        return textwrap.wrap(paragraph, width) or [""]
    column = _COMMAND_COLUMN if width >= _COMMAND_COLUMN + _NARROWEST_TEXT else 4
    padding = " " * column
    lines = textwrap.wrap(meaning, width, initial_indent=padding, subsequent_indent=padding)
    return [name.ljust(column) + lines[0][column:], *lines[1:]] if len(name) < column else [name, *lines]


def _epilog() -> str:
    return "\n".join([*(f"{name}\t{meaning}" for name, meaning in COMMANDS.items()), "", NOTE])


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="amux-agent",
        usage="%(prog)s [OPTIONS] [PROMPT...]",
        description=DESCRIPTION,
        epilog=_epilog(),
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("prompt", nargs="*", help="task for the agent (default: read from stdin)")
    add("--version", action="version", version=f"%(prog)s {__version__}", help="print the version")
    add("--control", action="store_true", help="read control lines from stdin, print events (for programs)")
    add("--json", action="store_true", dest="as_json", help="print events as JSON lines instead of the answer")
    add("--image", action="append", default=[], metavar="FILE", help="image for the prompt; repeatable")
    add("--base-url", metavar="URL", help="base URL of the model provider")
    add("--system-prompt-file", metavar="FILE", help="file with instructions for the agent")
    add("--output-schema-file", "--output-schema", metavar="FILE", help="JSON Schema of the final answer")
    _add_fields(parser)
    return parser


def _add_fields(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the run").add_argument
    unset = argparse.SUPPRESS
    add("--model", default=unset, help="provider:model (default: $AMUX_AGENT_MODEL, else by the API key that is set)")
    add(
        "--fallback-model",
        dest="fallback_models",
        action="append",
        metavar="MODEL",
        default=unset,
        help="use this model if the calls of the one before fail; repeatable",
    )
    add(
        "--agent", metavar="NAME", default=unset, help="build (default), plan, or an agent of a file: amux-agent agents"
    )
    add("--agent-file", metavar="FILE", default=unset, help="agent file to use, trusted as if it were yours")
    add("--session", "--resume", dest="session_id", metavar="ID", default=unset, help="continue this session")
    add(
        "--fork",
        dest="fork_session_id",
        metavar="ID",
        default=unset,
        help="start from the history of this session",
    )
    add("--no-session", action="store_true", default=unset, help="do not store the session")
    add(
        "--approval-mode",
        choices=("yolo", "prompt", "deny", "plan"),
        metavar="MODE",
        default=unset,
        help="for tools that do more than read: yolo, prompt, deny, or plan",
    )
    add(
        "--mode",
        choices=tuple(MODES),
        metavar="MODE",
        default=None,
        help="plan: only read, and plan; accept-edits: ask for commands, not for edits; ask: ask for both; yolo: ask "
        "for nothing",
    )
    add(
        "--system-prompt-mode",
        choices=("append", "prepend", "replace"),
        metavar="MODE",
        default=unset,
        help="where --system-prompt-file goes: append (default), prepend, or replace",
    )
    add(
        "--agents-doc",
        dest="agents_docs",
        action="append",
        metavar="FILE",
        default=unset,
        help="default: AGENTS.md or CLAUDE.md, of the user and of all directories down to this one",
    )
    add("--allowed-tools", action="append", metavar="TOOL", default=unset, help="needs no approval; repeatable")
    add("--disallowed-tools", action="append", metavar="TOOL", default=unset, help="is not offered; repeatable")
    add(
        "--add-dir",
        dest="add_dirs",
        action="append",
        metavar="DIR",
        default=unset,
        help="directory that tools may change, too; repeatable",
    )
    add(
        "--sandbox",
        choices=("auto", "off", "required"),
        default=unset,
        help="let commands write in the workspace only, without network (default: off)",
    )
    add("--sandbox-network", action="store_true", default=unset, help="leave the network to commands in the sandbox")
    add(
        "--sub-agent",
        dest="sub_agents",
        action="append",
        metavar="AGENT",
        default=unset,
        help="agent of agent-mux to which tasks can be delegated; repeatable",
    )
    add(
        "--openapi",
        action="append",
        type=_openapi,
        metavar="FILE|URL|JSON",
        default=unset,
        help="OpenAPI document whose operations become tools, or a JSON object with document, auth, methods, tags...; "
        "repeatable",
    )
    add("--skills", action="append", metavar="DIR", default=unset, help="directory of skills; repeatable")
    add(
        "--trust-project",
        action="store_true",
        default=unset,
        help="use what this directory brings along: MCP servers of .mcp.json, skills in .agents/skills and "
        ".claude/skills, and their scripts",
    )
    add("--trust-project-skills", action="store_true", default=unset, help="use its skills, but not its MCP servers")
    add("--skill-shell", action="store_true", default=unset, help="run commands in !`...` of skills when they are used")
    add("--max-active-skills", type=_count, default=unset, metavar="N", help="skills that may be active at once")
    add(
        "--max-model-calls",
        dest="max_turns",
        type=_count,
        default=unset,
        metavar="N",
        help="maximum number of model calls",
    )
    add("--max-turns", type=_count, default=unset, help=argparse.SUPPRESS)  # the old name
    add("--max-cost-usd", type=_amount, default=unset, metavar="USD")
    add("--max-tokens-total", "--max-total-tokens", type=_count, default=unset, metavar="N")
    add("--max-duration", type=_amount, default=unset, metavar="SECONDS")
    efforts = ("off", "minimal", "low", "medium", "high", "max")
    add("--thinking-effort", "--thinking", choices=efforts, metavar="LEVEL", default=unset, help=", ".join(efforts))
    add("--thinking-budget-tokens", type=_count, default=unset, metavar="N")
    add("--temperature", type=_amount, default=unset, metavar="T")
    add("--top-p", type=_amount, default=unset, metavar="P")
    add("--top-k", type=_count, default=unset, metavar="K")
    add("--max-output-tokens", type=_count, default=unset, metavar="N")


_OTHER_ARGUMENTS = frozenset({
    "prompt", "control", "as_json", "mode", "image", "base_url", "system_prompt_file", "output_schema_file",
})  # fmt: skip


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """Parse a command line. Raises `UsageError` if it is invalid, and `SystemExit` after printing the help."""
    parsed = vars(_parser().parse_args(list(argv)))
    prompt = " ".join(parsed["prompt"])
    if parsed["mode"] is not None and "approval_mode" in parsed:
        raise UsageError("--mode and --approval-mode cannot be combined; use --mode")
    if parsed["control"] and prompt:
        raise UsageError("--control reads prompts from standard input; do not pass one")
    return Arguments(
        prompt=prompt if parsed["prompt"] else None,
        control=parsed["control"],
        as_json=parsed["as_json"],
        images=tuple(parsed["image"]),
        base_url=parsed["base_url"],
        flags={
            **{name: value for name, value in parsed.items() if name not in _OTHER_ARGUMENTS},
            **MODES.get(parsed["mode"], {}),
        },
        system_prompt_file=parsed["system_prompt_file"],
        output_schema_file=parsed["output_schema_file"],
    )


def _openapi(text: str) -> Any:
    from agent_loop.cli.openapi_services import parse_settings  # noqa: PLC0415  # this module imports little

    try:
        return parse_settings(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:200]!r}: {error}") from None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def _amount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a non-negative number")
    return number
