"""Decorators that add shared flags to commands: `--json`, `--debug`, `--no-color`; `--server`, `--server-token-file`.

Only an explicit `--server` moves a listing to a service (`amux serve`). `$AGENT_MUX_SERVER` affects `amux run` alone:
the subject of a listing must not change with the environment.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from agent_mux.cli.command_output import Invocation
from agent_mux.cli.options import Debug, Json, NoColor, ServerTokenFile

if TYPE_CHECKING:
    from agent_mux.cli.command_output import ServiceEndpoint


_COMMON_FLAGS = {"json": Json, "debug": Debug, "no_color": NoColor}


def with_common_flags(function: Callable[..., int]) -> Callable[..., int]:
    """Add `--json`, `--debug` and `--no-color` to `function(context, ...)`; they are stored in its `Invocation`."""
    takes_server = "server" in inspect.signature(function).parameters

    def command(**given: Any) -> int:
        if not takes_server:
            reject_server(given["context"])
        invocation: Invocation = given["context"].obj
        for name in _COMMON_FLAGS:
            setattr(invocation, name, given.pop(name) or getattr(invocation, name))
        return function(**given)

    added = [keyword_parameter(name, annotation, default=False) for name, annotation in _COMMON_FLAGS.items()]
    return with_parameters(command, function, added)


def reject_server(context: typer.Context) -> None:
    """Raise a usage error if a service is named before a command that only works locally."""
    option = given_server_option(context.find_root().params)
    if option is not None:
        from agent_mux.cli.errors import no_service_error

        raise no_service_error(option, context.command_path.partition(" ")[2])


def given_server_option(given: Mapping[str, Any]) -> str | None:
    """Return the option that names a service in the values of the options before a command, else None."""
    for name, option in (("server", "--server"), ("server_token_file", "--server-token-file")):
        if given.get(name) is not None:
            return option
    return None


def keyword_parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return a keyword-only parameter for one option."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def with_flags(
    kind: type[Any], function: Callable[..., int], left_out: frozenset[str] = frozenset()
) -> Callable[..., int]:
    """Add the fields of a dataclass, whose annotations are options, as parameters to `function(..., flags: kind)`.

    `left_out`: fields that keep their defaults.
    """
    hints = {name: hint for name, hint in get_type_hints(kind, include_extras=True).items() if name not in left_out}

    def command(**given: Any) -> int:
        flags = kind(**{name: given.pop(name) for name in hints})
        return function(**given, flags=flags)

    added = [keyword_parameter(one.name, hints[one.name], one.default) for one in fields(kind) if one.name in hints]
    return with_parameters(command, function, added, without="flags")


def with_parameters(
    command: Callable[..., int],
    function: Callable[..., int],
    added: Sequence[inspect.Parameter],
    without: str | None = None,
) -> Callable[..., int]:
    """Give `command` the signature that typer reads: the parameters of `function` except `without`, and `added`."""
    signature = inspect.signature(function)
    own = [parameter for name, parameter in signature.parameters.items() if name != without]
    wraps(function)(command)
    command.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *added)}
    command.__doc__ = reflow(function.__doc__)
    return command


def reflow(docstring: str | None) -> str:
    """Return a docstring as help text: paragraphs without the line breaks of the source."""
    paragraphs = inspect.cleandoc(docstring or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


_LOCAL_FLAGS = {"directory": "--dir", "config_dir": "--config-dir", "project_dir": "--project-dir"}
"""Options that refer to files of this machine, by parameter name."""


def service_flags(help_text: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator that adds `--server` and `--server-token-file` to `function(context, ...)`.

    The endpoint is stored in `context.obj`. `help_text`: what `--server` does for this command.
    """
    url = Annotated[str | None, typer.Option("--server", metavar="URL", help=help_text, show_default=False)]
    flags = {"server": url, "server_token_file": ServerTokenFile}

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        def command(**given: Any) -> int:
            server, token_file = (given.pop(name) for name in flags)
            given["context"].obj.service = _service_endpoint(server, token_file, given)
            return function(**given)

        return with_parameters(
            command, function, [keyword_parameter(name, kind, default=None) for name, kind in flags.items()]
        )

    return decorate


with_service_flags = service_flags("Query a service (amux serve) instead of this machine.")


def _service_endpoint(url: str | None, token_file: Path | None, given: dict[str, Any]) -> "ServiceEndpoint | None":
    if url is None and token_file is None:
        return None
    from agent_mux.cli.remote import service_at

    local = [flag for name, flag in _LOCAL_FLAGS.items() if given.get(name) is not None]
    return service_at(url, token_file, local)
