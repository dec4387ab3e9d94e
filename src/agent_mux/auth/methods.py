"""The contract: how an agent may be authenticated, and how a person gets there."""

from collections.abc import Callable
from dataclasses import dataclass

from agent_mux.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Credentials were found. Never the credentials themselves."""

    where: str
    """A path, or the name of a variable."""
    expires_at: int | None = None
    """Milliseconds since the epoch; None: it does not say, or they are renewed by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthMethod:
    """One way to be authenticated."""

    name: str
    """One of `AgentCapabilities.auth_methods`."""
    display_name: str
    variables: tuple[str, ...] = ()
    """Any of these, set and not empty, is enough."""
    find: Callable[[Place], Evidence | None] | None = None
    """Looks into files: a few small ones; no network, no keyring, no writing. May raise `OSError`, `ValueError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStep:
    """What a person can do to be authenticated: one of these is enough."""

    text: str
    """A sentence."""
    command: tuple[str, ...] = ()
    """Words behind the agent's program, where it has a command for that; its `--help` is checked by a live test."""
    variable: str | None = None
    """Or an environment variable to set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAuth:
    """How an agent is authenticated."""

    methods: tuple[AuthMethod, ...]
    """In the order in which the agent prefers them."""
    steps: tuple[SetupStep, ...]
    elsewhere: Callable[[Place], str | None] = lambda _: None
    """Where credentials may be that nobody looks for here, such as the keyring of the system; None: nowhere."""
