"""The reference of the command line: every command of `amux` with its flags, from the program itself."""

from collections.abc import Iterable, Iterator
from typing import Any

from agent_mux.cli import exit_codes
from agent_mux.cli.app import command
from agent_mux.cli.command_catalog import catalog_text, run_flags_text
from agent_mux.cli.examples import examples_of

INTRODUCTION = """# Command line

<!-- Written by docs/generate.py from the program itself. Do not edit. -->

`amux COMMAND --help` shows the same information. Global flags may also precede the command:
`amux --json sessions list`. With `--json`, commands print `{"ok": true, "data": ...}` or
`{"ok": false, "error": {"code", "message", "recoverable"}}`; `run`, `parse` and `replay` print one event per line.
"""


def cli_page() -> str:
    """Return the page."""
    root = command()
    context = root.make_context("amux", [], resilient_parsing=True)
    commands = sorted(_leaf_commands(root, ()), key=lambda item: item[0])
    return "\n".join((
        INTRODUCTION,
        *_contents(commands),
        "",
        *(line for names, one in commands for line in _section(names, one, context)),
        *_exit_codes(),
    ))  # fmt: skip


def catalog_page() -> str:
    """Return the catalog of commands, from which `amux` prints its help pages."""
    return catalog_text(command())


def run_flags_page() -> str:
    """Return the flags of `amux run`, from which it parses plain command lines."""
    return run_flags_text(command())


def _leaf_commands(group: Any, parents: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from _leaf_commands(one, (*parents, name))
        else:
            yield (*parents, name), one


def _contents(commands: Iterable[tuple[tuple[str, ...], Any]]) -> Iterator[str]:
    yield "| command | description |"
    yield "|---|---|"
    for names, one in commands:
        anchor = "-".join(("amux", *names))
        yield f"| [`amux {' '.join(names)}`](#{anchor}) | {_cell(_first_sentence(one.help or ''))} |"


def _section(names: tuple[str, ...], one: Any, context: Any) -> Iterator[str]:
    arguments = [param for param in one.params if param.param_type_name == "argument"]
    options = [param for param in one.params if param.param_type_name == "option"]
    shown = " ".join(param.metavar or param.name.upper() for param in arguments)
    yield f"## amux {' '.join(names)}\n"
    yield f"```console\n$ amux {' '.join((*names, shown)).strip()}{' [FLAGS]' if options else ''}\n```\n"
    yield f"{one.help or ''}\n"
    examples = examples_of(" ".join(names))
    if examples:
        yield "```console"
        yield from (f"$ {example}" for example in examples)
        yield "```\n"
    for title, params in (("argument", arguments), ("flag", options)):
        if params:
            yield f"| {title} | |"
            yield "|---|---|"
            yield from (f"| {_cell(_name(param, context))} | {_cell(_help(param))} |" for param in params)
            yield ""


def _name(param: Any, context: Any) -> str:
    if param.param_type_name == "argument":
        return f"`{param.metavar or param.name.upper()}`"
    names = [*sorted(param.opts, key=len, reverse=True), *param.secondary_opts]
    value = "" if getattr(param, "is_flag", False) else f" {_value(param, context)}"
    return ", ".join(f"`{name}{value if name.startswith('--') else ''}`" for name in names)


def _value(param: Any, context: Any) -> str:
    if param.metavar:
        return str(param.metavar)
    shown = str(param.display_type(context)).strip("<>[]")
    return shown if "|" in shown else shown.upper().replace("STR", "TEXT")  # choices are literal values


def _help(param: Any) -> str:
    default = param.default
    is_shown = isinstance(default, str | int | float) and not isinstance(default, bool)
    return f"{param.help or ''}{f' Default: {default}.' if is_shown and param.show_default is not False else ''}"


def _first_sentence(text: str) -> str:
    return text.split("\n\n", maxsplit=1)[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield "| code | meaning |"
    yield "|---|---|"
    yield from (f"| {code} | {meaning} |" for code, meaning in exit_codes.MEANINGS.items())
    yield ""
