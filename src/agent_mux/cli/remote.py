"""Work at a service instead of this machine: `--server` and `$AGENT_MUX_SERVER`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mux.cli.command_output import ServiceEndpoint
from agent_mux.cli.errors import usage_error

if TYPE_CHECKING:
    from agent_mux.cli.interaction_handlers import InteractionHandler
    from agent_mux.client.remote import RemoteMux
    from agent_mux.run.base import Run
    from agent_mux.sdk.option_fields import AttachOptions


@dataclass(frozen=True, slots=True)
class RemoteTask:
    """A run on a service."""

    service: ServiceEndpoint
    fields: dict[str, Any]
    """The fields of `RunOptions` that the command line sets."""

    @property
    def directory(self) -> Path | None:
        """The working directory of the agent, on the machine of the service, if the command line names it."""
        return self.fields.get("cwd")

    def client(self) -> "RemoteMux":
        """Return a client of the service."""
        return self.service.client()

    async def start(self, mux: "RemoteMux", handler: "InteractionHandler") -> "Run":
        """Start the run with a client of the service.

        Only the service knows the effective approval mode, so `handler` answers every approval that the service leaves
        open. A mode from the command line would make the service decline questions; `on_input_required` keeps them
        open for `handler`.
        """
        from agent_mux.sdk.options import RunOptions

        mode = self.fields.get("approval_mode", "prompt")
        answered = handler.with_callbacks(RunOptions(agent="-", prompt="-", approval_mode=mode))
        callbacks: AttachOptions = {} if mode == "prompt" else {"on_input_required": answered.on_input_required}
        if mode == "plan":
            callbacks["on_approval_request"] = answered.on_approval_request
        run = await mux.start(**self.fields, **callbacks)
        run.answer_with(answered.on_approval_request, answered.on_input_required)
        return run


def with_absolute_paths(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with paths that start in the current directory, as those of other flags do.

    A run whose agent only the service knows is sent as it is: there, relative paths start at its first root.
    """
    from agent_mux.sdk.registry import AdapterRegistry
    from agent_mux.settings.named_paths import start_at, with_absolute_files

    return with_absolute_files(fields, fields.get("agent") or "", AdapterRegistry(), start_at(Path.cwd))


def service_at(url: str | None, token_file: Path | None, local: Sequence[str]) -> ServiceEndpoint | None:
    """Return the service at `url`, None without one. `local`: the given flags that refer to files of this machine."""
    if url is not None and not url.strip():
        raise usage_error("--server is empty; name the URL of a service, or leave it out to work on this machine")
    if url is None:
        if token_file is not None:
            raise usage_error("--server-token-file requires --server")
        return None
    for flag in local:
        raise usage_error(
            f"{flag} refers to this machine and cannot be combined with the service {_without_credentials(url)}"
        )
    return ServiceEndpoint(url, None if token_file is None else _read_token(token_file))


def _read_token(path: Path) -> str:
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise usage_error(f"--server-token-file: cannot read {path}: {why}; name a file with the token") from error
    if not token:
        raise usage_error(f"--server-token-file: {path} is empty; write the token to it")
    return token


def _without_credentials(url: str) -> str:
    """Return the URL without user name, password and query."""
    return url.rpartition("@")[2].partition("?")[0]
