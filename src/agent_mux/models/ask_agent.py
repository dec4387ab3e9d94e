"""Running an agent's own command that lists its models."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_mux.errors import AgentMuxError, AuthError, CapabilityError
from agent_mux.process.command import run_program
from agent_mux.process.executable import find_executable
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import ModelCapabilities, ModelListing


def ask_for_models(adapter: Adapter, environ: Mapping[str, str], *, timeout: float) -> tuple[ModelCapabilities, ...]:
    """Return the models that the installed agent lists.

    Raises:
        CapabilityError: The agent has no such command.
        AuthError: The list is empty: the agent has no credentials for any model.
        AgentMuxError: AGENT_NOT_INSTALLED; SPAWN_ERROR if the command cannot be started; TIMEOUT; AGENT_CRASH if it
            fails; PARSE_ERROR if its output is not understood.
    """
    listing = adapter.model_listing
    if listing is None:
        raise CapabilityError(adapter.agent, "listing its models; the known ones come with agent-mux")
    command = (find_executable(adapter, environ), *listing.argv)
    shown = f"`{Path(command[0]).name} {' '.join(listing.argv)}`"
    answer = run_program(command, environ={**environ, **listing.env}, timeout=timeout)
    if answer.exit_code != 0:
        message = f"{shown} ended with exit code {answer.exit_code}: {answer.error_line}"
        raise AgentMuxError("AGENT_CRASH", message)
    models = _parse(listing, "\n".join(getattr(answer, name) for name in listing.reads), shown)
    if not models:
        raise AuthError(adapter.agent, f"{shown} lists no models", adapter.auth_guidance)
    return models


def _parse(listing: ModelListing, output: str, shown: str) -> tuple[ModelCapabilities, ...]:
    try:
        models = listing.parse(output)
        msgspec.json.encode(models)  # raises for a surrogate, which cannot be stored
    except ValueError as error:
        message = f"cannot parse the output of {shown}: {error}; the agent may be newer than agent-mux supports"
        raise AgentMuxError("PARSE_ERROR", message) from error
    return models
