"""The commands of `amux` as data: what their help pages show.

The catalog is derived from the typer application when the reference pages are generated (`python docs/generate.py`)
and stored in `generated/`, so that help needs neither typer nor the modules of the commands. A test and
`docs/generate.py --check` compare the stored file with the application. docs/design/decisions/generated-command-data.md
gives the reasons.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_mux.cli import exit_codes
from agent_mux.cli.completions import completion_of
from agent_mux.cli.examples import examples_of

GENERATED = Path(__file__).with_name("generated")
CATALOG_FILE = GENERATED / "command_catalog.json"
RUN_FLAGS_FILE = GENERATED / "run_flags.json"
"""The flags of `amux run`, for `quick_run`."""

COMMAND_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Run agents": ("run", "runs", "worktrees", "sessions", "profiles", "compare", "demo"),
    "Agents on this machine": (
        "doctor", "detect", "install", "uninstall", "update", "auth", "config", "mcp", "hooks", "skills",
        "subagents", "plugins",
    ),
    "Models and costs": ("models", "cost", "quota"),
    "Serve": ("serve", "gateway", "tokens", "audit", "acp", "mcp-server"),
    "Recordings and events": ("replay", "record", "parse", "validate", "schema"),
    "agent-mux": ("init", "adapters", "capabilities", "detect-host", "completion", "version", "help"),
}  # fmt: skip
"""The commands of the root, by purpose. A command that is in no group is shown under `OTHER_COMMANDS`."""
OTHER_COMMANDS = "Other commands"
_COMMON = ("json", "compact", "quiet", "debug", "no_color", "config_dir", "project_dir", "server", "server_token_file")
"""Options that most commands have; they are shown last."""
_COMMON_PANEL, _OWN_PANEL = "Common options", "Options"
_VALUES = {"str": "TEXT", "int": "N", "float": "NUMBER", "path": "PATH"}
_OWN_HELP_OPTION = {"names": ["-h", "--help"], "value": "", "help": "Show this help.", "panel": _COMMON_PANEL}


def load_catalog() -> dict[str, Any]:
    """Return the stored catalog: for each command, by its words, what its help shows. The root has no words."""
    catalog: dict[str, Any] = json.loads(CATALOG_FILE.read_bytes())
    return catalog


def load_run_flags() -> list[dict[str, Any]]:
    """Return the flags of `amux run`: their names, types and defaults."""
    flags: list[dict[str, Any]] = json.loads(RUN_FLAGS_FILE.read_bytes())
    return flags


def run_flags_text(root: Any) -> str:
    """Return the text of the file with the flags of `amux run`."""
    context = root.make_context("amux", [], resilient_parsing=True)
    options = [one for one in root.commands["run"].params if one.param_type_name == "option" and one.name != "help"]
    rows = [json.dumps(_run_flag(one, context), ensure_ascii=False) for one in options]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def _run_flag(parameter: Any, context: Any) -> dict[str, Any]:
    shown = str(parameter.display_type(context)).strip("<>")
    return {
        "name": parameter.name,
        "names": parameter.opts,
        "negations": parameter.secondary_opts,
        "kind": shown.removeprefix("list[").removesuffix("]").lower(),
        "multiple": bool(parameter.multiple),
        "default": parameter.default,
    }


def catalog_text(root: Any) -> str:
    """Return the text of the catalog file for the root command of the application."""
    context = root.make_context("amux", [], resilient_parsing=True)
    catalog = {" ".join(words): describe(words, one, context) for words, one in all_commands(root)}
    return json.dumps(catalog, ensure_ascii=False, indent=0, sort_keys=True) + "\n"


def all_commands(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield a command, and all commands in it, with their words."""
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from all_commands(inner, *words, name)


def describe(words: Sequence[str], command: Any, context: Any) -> dict[str, Any]:
    """Return what the help of one command shows."""
    shown = [one for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    arguments = [_argument(one, context, words) for one in shown if one.param_type_name == "argument"]
    options = [_option(one, context, words) for one in shown if one.param_type_name == "option"]
    commands = getattr(command, "commands", {})
    return {
        "help": command.help or "",
        "arguments": arguments,
        "options": [*options, _OWN_HELP_OPTION],
        "commands": _command_rows(commands, is_root=not words),
        "examples": list(examples_of(" ".join(words))),
        "note": _exit_code_note() if not words else "",
    }


def _command_rows(commands: Mapping[str, Any], *, is_root: bool) -> list[dict[str, str]]:
    """Return the commands in a group; those of the root in the order of `COMMAND_GROUPS`."""
    panels = {name: title for title, names in COMMAND_GROUPS.items() for name in names} if is_root else {}
    order = {name: position for position, name in enumerate(panels)}
    shown = sorted(
        (name for name in commands if not commands[name].hidden), key=lambda name: order.get(name, len(order))
    )
    other = OTHER_COMMANDS if is_root else "Commands"
    return [
        {"name": name, "help": _first_sentence(commands[name].help or ""), "panel": panels.get(name, other)}
        for name in shown
    ]


def _exit_code_note() -> str:
    return "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in exit_codes.MEANINGS.items()) + "."


def _first_sentence(text: str) -> str:
    first = text.split("\n\n", maxsplit=1)[0]
    sentence, dot, _ = first.partition(". ")
    return sentence.removesuffix(".") if dot else first.removesuffix(".")


def _argument(parameter: Any, context: Any, words: Sequence[str]) -> dict[str, Any]:
    value = _value(parameter, context)
    name = parameter.metavar or parameter.name.upper()
    choices = f"{value.replace('|', ', ')}. " if "|" in value and not parameter.metavar else ""
    usage = name if "[" in name else f"{name}..." if parameter.nargs != 1 else name
    if not parameter.required and "[" not in name:
        usage = f"[{usage}]"
    shown = {"name": name, "usage": usage, "help": f"{choices}{parameter.help or ''}"}
    return shown | _completion(parameter, context, words)


def _option(parameter: Any, context: Any, words: Sequence[str]) -> dict[str, Any]:
    names = sorted(parameter.opts, key=len)
    default = parameter.default
    has_default = isinstance(default, str | int | float) and not isinstance(default, bool)
    is_shown = has_default and parameter.show_default is not False and "default" not in (parameter.help or "")
    panel = _COMMON_PANEL if parameter.name in _COMMON else _OWN_PANEL
    is_flag = getattr(parameter, "is_flag", False)
    shown = {
        "names": [*names, *parameter.secondary_opts],
        "value": "" if is_flag else _value(parameter, context),
        "help": f"{parameter.help or ''}{f' (default {default})' if is_shown else ''}",
        "panel": panel if parameter.name in _COMMON else getattr(parameter, "rich_help_panel", None) or panel,
    }
    return shown if is_flag else shown | _completion(parameter, context, words)


def _completion(parameter: Any, context: Any, words: Sequence[str]) -> dict[str, Any]:
    """Return what completes the value of a parameter in a shell, if anything does."""
    value = _value(parameter, context)
    found = completion_of(tuple(words), parameter.name, parameter.param_type_name, value)
    return {} if found is None else {"complete": found}


def _value(parameter: Any, context: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    kind = str(parameter.display_type(context)).strip("<>").removeprefix("list[").removesuffix("]")
    return _VALUES.get(kind, kind if "|" in kind else kind.upper())
