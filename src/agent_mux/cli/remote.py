"""`amux --server URL run ...`: the same command line, for a run of a service. And who is asked by other commands."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mux.cli.errors import usage_error

if TYPE_CHECKING:
    from agent_mux.cli.interaction_handlers import InteractionHandler
    from agent_mux.cli.run_flags import RunFlags
    from agent_mux.client.remote import RemoteMux
    from agent_mux.run.interface import Run


_LOCAL_FIELDS = ("journal", "no_journal", "config_dir", "project_dir")
"""Flags about files of this machine."""


@dataclass(frozen=True, slots=True)
class RemoteTask:
    """A run of a service."""

    service: "ServiceEndpoint"
    said: dict[str, Any]
    """Fields of `RunOptions`."""

    def client(self) -> "RemoteMux":
        """A client of the service."""
        return self.service.client()

    async def start(self, mux: "RemoteMux", handler: "InteractionHandler") -> "Run":
        """Start it.

        Approvals that the service leaves open are for the handler: which mode holds is known there. Questions are left
        open where the command line says a mode that would decline them.
        """
        from agent_mux.options import RunOptions

        mode = self.said.get("approval_mode", "prompt")
        answering = handler.with_callbacks(RunOptions(agent="-", prompt="-", approval_mode=mode))
        asked = {} if mode == "prompt" else {"on_input_required": answering.on_input_required}
        run = await mux.start(**self.said, **asked)
        run.answer_with(answering.on_approval_request, answering.on_input_required)
        return run


@dataclass(frozen=True, slots=True)
class ServiceEndpoint:
    """Where a run is to work, or who is asked."""

    url: str
    token: str | None = field(default=None, repr=False)

    def client(self) -> "RemoteMux":
        """A client of it."""
        from agent_mux.client.remote import RemoteMux

        return RemoteMux(self.url, token=self.token)


def service_from_flags(flags: "RunFlags") -> ServiceEndpoint | None:
    """The service that is named; None: none. Raises a usage error for flags that make no sense with one."""
    url = flags.server if flags.server is not None else os.environ.get("AGENT_MUX_SERVER")
    local = ["--" + name.replace("_", "-") for name in _LOCAL_FIELDS if getattr(flags, name)]
    return service_at(url, flags.server_token_file, local)


def service_at(url: str | None, token_file: Path | None, local: Sequence[str]) -> ServiceEndpoint | None:
    """The same; `local`: flags that were given, and are about files of this machine."""
    if not url:
        if token_file is not None:
            raise usage_error("--server-token-file is for a service; name it with --server")
        return None
    for flag in local:
        raise usage_error(
            f"{flag} is about this machine, and the work is at {_without_credentials(url)}; leave one of them out"
        )
    return ServiceEndpoint(url, None if token_file is None else _read_token(token_file))


def refuse_service(flags: "RunFlags", command: str) -> None:
    """Raises a usage error: the command does its work here."""
    if flags.server or flags.server_token_file is not None:
        raise no_service_error("server", command)


def no_service_error(name: str, command: str) -> Exception:
    """What to say of the option `name` with a command that does its work here."""
    flag = "--" + name.replace("_", "-")
    return usage_error(f"{flag} is for `amux run` and for commands that read; `amux {command}` is about this machine")


def _read_token(path: Path) -> str:
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise usage_error(f"--server-token-file: {path} cannot be read: {why}") from error
    if not token:
        raise usage_error(f"--server-token-file: {path} is empty")
    return token


def _without_credentials(url: str) -> str:
    """Without what should not be in it."""
    return url.rpartition("@")[2] if "@" in url else url
