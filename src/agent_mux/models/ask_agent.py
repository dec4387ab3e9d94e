"""Asking an agent for its models, by its own command."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_mux.errors import AgentMuxError, AuthError, CapabilityError
from agent_mux.process.command import run_program
from agent_mux.process.executable import find_executable
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import ModelCapabilities, ModelListing


def ask_for_models(adapter: Adapter, environ: Mapping[str, str], *, timeout: float) -> tuple[ModelCapabilities, ...]:
    """What the installed agent says it offers.

    Raises:
        CapabilityError: It has no command for that.
        AuthError: It offers nothing, as it is: it knows no key.
        AgentMuxError: AGENT_NOT_INSTALLED; SPAWN_ERROR where it cannot be started; TIMEOUT; AGENT_CRASH where it ends
            with an error; PARSE_ERROR where it says what is not understood.
    """
    listing = adapter.model_listing
    if listing is None:
        told = "listing its models; what is known of them comes with agent-mux"
        raise CapabilityError(adapter.agent, told)
    command = (find_executable(adapter, environ), *listing.argv)
    asked = f"`{Path(command[0]).name} {' '.join(listing.argv)}`"
    answer = run_program(command, environ={**environ, **listing.env}, timeout=timeout)
    if answer.exit_code != 0:
        failed = f"{asked} ended with exit code {answer.exit_code}: {answer.error_line}"
        raise AgentMuxError("AGENT_CRASH", failed)
    models = _read(listing, "\n".join(getattr(answer, name) for name in listing.reads), asked)
    if not models:
        raise AuthError(adapter.agent, f"{asked} lists no models", adapter.auth_guidance)
    return models


def _read(listing: ModelListing, said: str, asked: str) -> tuple[ModelCapabilities, ...]:
    try:
        models = listing.parse(said)
        msgspec.json.encode(models)  # a surrogate in it is no text that can be kept
    except ValueError as error:
        strange = f"what {asked} printed is not understood: {error}; the agent may be newer than agent-mux knows"
        raise AgentMuxError("PARSE_ERROR", strange) from error
    return models
