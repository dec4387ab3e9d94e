"""Decorators."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import typer

from agent_mux.cli.json_output import Invocation
from agent_mux.cli.options import Debug, Json, NoColor

_COMMON = {"json": Json, "debug": Debug, "no_color": NoColor}


def with_common_flags(function: Callable[..., int]) -> Callable[..., int]:
    """The command `function(context, ...)` with `--json`, `--debug` and `--no-color`, which go to its `Invocation`."""
    takes_server = "server" in inspect.signature(function).parameters

    def command(**given: Any) -> int:
        if not takes_server:
            _check_server(given["context"])
        invocation: Invocation = given["context"].obj
        for name in _COMMON:
            setattr(invocation, name, given.pop(name) or getattr(invocation, name))
        return function(**given)

    added = [keyword(name, annotation, default=False) for name, annotation in _COMMON.items()]
    return extended(command, function, added)


def _check_server(context: typer.Context) -> None:
    """Raises a usage error where a service is named in front of a command that does its work here."""
    root = context.find_root()
    told = next((name for name in ("server", "server_token_file") if root.params.get(name) is not None), None)
    if told is not None:
        from agent_mux.cli.server import not_for

        raise not_for(told, context.command_path.partition(" ")[2])


def keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """One option, as a parameter."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def extended(
    command: Callable[..., int],
    function: Callable[..., int],
    added: Sequence[inspect.Parameter],
    without: str | None = None,
) -> Callable[..., int]:
    """`command` as typer shall see it: with the parameters of `function`, and these."""
    signature = inspect.signature(function)
    own = [parameter for name, parameter in signature.parameters.items() if name != without]
    wraps(function)(command)
    command.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *added)}
    command.__doc__ = reflowed(function.__doc__)
    return command


def reflowed(docstring: str | None) -> str:
    """A docstring as help: its paragraphs without their line breaks, which are those of the source."""
    paragraphs = inspect.cleandoc(docstring or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
