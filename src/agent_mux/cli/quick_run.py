"""`amux run` without typer: parse plain command lines by the stored catalog, and leave all others to typer.

typer and the modules of all commands take longer to import than a run takes to start. A command line is plain if each
option is known, is written in full and has a value of its type. Every other one (abbreviations, mistakes, `--help`) is
parsed by typer, which reports what is wrong; so both ways accept the same command lines with the same result.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from agent_mux.cli.command_output import Invocation
    from agent_mux.cli.run_flags import RunFlags

_READERS: Mapping[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float, "path": Path}


class QuickRun(NamedTuple):
    """A parsed command line of `amux run`."""

    words: list[str]
    flags: SimpleNamespace
    """The values of the flags, under the names of `RunFlags`."""


def parse_run(arguments: Sequence[str], table: Sequence[Mapping[str, Any]]) -> QuickRun | None:
    """Parse the arguments after `run`; None if the command line is not plain. `table`: the flags in the catalog."""
    flags = SimpleNamespace(**{flag["name"]: flag["default"] for flag in table})
    by_name = {name: (flag, True) for flag in table for name in flag["names"]}
    by_name |= {name: (flag, False) for flag in table for name in flag["negations"]}
    words: list[str] = []
    rest = list(reversed(arguments))
    while rest:
        argument = rest.pop()
        if argument == "--":
            words += reversed(rest)
            break
        if argument == "-" or not argument.startswith("-"):
            words.append(argument)
            continue
        name, has_value, value = argument.partition("=")
        flag, state = by_name.get(name, (None, True))
        if flag is None or (has_value and not name.startswith("--")):
            return None
        if flag["kind"] == "bool":
            if has_value:
                return None
            setattr(flags, flag["name"], state)
            continue
        if not has_value:
            if not rest or rest[-1].startswith("-"):
                return None
            value = rest.pop()
        if not _set_value(flags, flag, value):
            return None
    return QuickRun(words, flags)


def _set_value(flags: SimpleNamespace, flag: Mapping[str, Any], value: str) -> bool:
    """Set the value of a flag. Return False if it is not of the flag's type."""
    if flag["kind"] in {"int", "float"} and value.strip("+-.0123456789"):
        return False  # typer reports it; also numbers such as `1_0` and `inf`
    reader = _READERS.get(flag["kind"])
    if reader is None:
        return False
    try:
        read = reader(value)
    except ValueError:
        return False
    if flag["multiple"]:
        setattr(flags, flag["name"], [*(getattr(flags, flag["name"]) or ()), read])
    else:
        setattr(flags, flag["name"], read)
    return True


def run_quickly(arguments: Sequence[str], invocation: "Invocation") -> int | None:
    """Run `amux run` with the arguments after `run`. Return the exit code; None if typer has to parse them."""
    from agent_mux.cli.command_catalog import load_run_flags

    parsed = parse_run(arguments, load_run_flags())
    if parsed is None:
        return None
    from agent_mux.cli.run_execution import start_run

    code = start_run(invocation, parsed.words, cast("RunFlags", parsed.flags))
    sys.stdout.flush()
    return code
