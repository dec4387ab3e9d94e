"""The command line of `amux-agent`, for people: one prompt, and a flag for each field of `start`.

Source: the agent protocol, "`amux-agent`". Light to import: `--version` and `--help` need nothing else.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from agent_loop.cli.fault import Fault

DESCRIPTION = "An agent that works in the current directory. Without a prompt, it is read from standard input."
EPILOG = (
    "amux-agent sessions           list what can be continued with --session\n"
    "amux-agent sessions ID        show a conversation\n\n"
    "A model is named provider:model (anthropic:..., openai:..., scripted:PATH, replay:PATH); keys come from the\n"
    "environment alone. Exit code: 0 good, 1 the run failed, 2 wrong usage, 130 interrupted."
)


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the command line says."""

    prompt: str | None
    """None: on standard input."""
    control: bool
    as_json: bool
    images: tuple[str, ...]
    """Paths."""
    base_url: str | None
    flags: dict[str, Any]
    """Fields of `start`, as far as they are said."""
    system_prompt_file: str | None
    output_schema_file: str | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Fault(f"{message}; `amux-agent --help` shows what there is")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="amux-agent",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("prompt", nargs="*", help="what the agent is to do")
    add("--version", action="store_true", help="print the version")
    add("--control", action="store_true", help="take control lines on stdin, print events: for programs")
    add("--json", action="store_true", dest="as_json", help="print events as JSON lines instead of the answer")
    add("--image", action="append", default=[], metavar="FILE", help="a picture for the prompt; may be repeated")
    add("--base-url", metavar="URL", help="address of the model's provider")
    add("--system-prompt-file", metavar="FILE", help="instructions")
    add("--output-schema-file", "--output-schema", metavar="FILE", help="JSON Schema of the final answer")
    _add_fields(parser)
    return parser


def _add_fields(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the run").add_argument
    unsaid = argparse.SUPPRESS
    add("--model", default=unsaid, help="provider:model; default: $AMUX_AGENT_MODEL, or a script that says so")
    add("--session", "--resume", dest="session_id", metavar="ID", default=unsaid, help="continue this session")
    add("--fork", dest="fork_session_id", metavar="ID", default=unsaid, help="a new one with the history of this")
    add("--no-session", action="store_true", default=unsaid, help="store nothing")
    add("--approval-mode", choices=("yolo", "prompt", "deny"), default=unsaid, help="who may use tools that change")
    add("--system-prompt-mode", choices=("append", "prepend", "replace"), default=unsaid)
    add("--agents-doc", dest="agents_docs", action="append", metavar="FILE", default=unsaid, help="default: AGENTS.md")
    add("--skills", action="append", metavar="DIR", default=unsaid, help="a directory of skills; may be repeated")
    add("--max-turns", type=_count, default=unsaid, metavar="N", help="model calls at most")
    add("--max-cost-usd", type=_amount, default=unsaid, metavar="USD")
    add("--max-tokens-total", "--max-total-tokens", type=_count, default=unsaid, metavar="N")
    add("--max-duration", type=_amount, default=unsaid, metavar="SECONDS")
    efforts = ("off", "minimal", "low", "medium", "high", "max")
    add("--thinking-effort", "--thinking", choices=efforts, default=unsaid)
    add("--thinking-budget-tokens", type=_count, default=unsaid, metavar="N")
    add("--temperature", type=_amount, default=unsaid, metavar="T")
    add("--top-p", type=_amount, default=unsaid, metavar="P")
    add("--top-k", type=_count, default=unsaid, metavar="K")
    add("--max-output-tokens", type=_count, default=unsaid, metavar="N")


_OURS = frozenset({
    "prompt", "version", "control", "as_json", "image", "base_url", "system_prompt_file", "output_schema_file",
})  # fmt: skip


def read_arguments(argv: Sequence[str]) -> Arguments:
    """What the command line says. Raises `Fault`; prints the help and leaves where that is asked for."""
    said = vars(_parser().parse_args(list(argv)))
    prompt = " ".join(said["prompt"])
    if said["control"] and prompt:
        raise Fault("--control takes its prompts on standard input; leave the prompt out")
    return Arguments(
        prompt=prompt if said["prompt"] else None,
        control=said["control"],
        as_json=said["as_json"],
        images=tuple(said["image"]),
        base_url=said["base_url"],
        flags={name: value for name, value in said.items() if name not in _OURS},
        system_prompt_file=said["system_prompt_file"],
        output_schema_file=said["output_schema_file"],
    )


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1")
    return int(text)


def _amount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0")
    return number
