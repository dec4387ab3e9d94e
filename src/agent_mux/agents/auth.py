"""Authentication of agents: which credentials are present on this machine. See docs/spec/run-api.md, section 7."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.installation import AgentAuth, AuthMethod, FoundCredentials, SetupStep

AuthStatus = Literal["authenticated", "expired", "unauthenticated", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthState:
    """The state of an agent's credentials. Does not contain the credentials."""

    agent: str
    """Registered name of the agent."""
    status: AuthStatus
    """`unknown`: there may be credentials in a place that is not checked."""
    method: str | None = None
    """Name of the method by which the agent authenticates; None without credentials."""
    where: str | None = None
    """The variable or the file that contains the credentials."""
    expires_at: int | None = None
    """Milliseconds since the epoch."""
    problem: str | None = None
    """A file that could not be read, or the unchecked place where credentials may be."""


class Auth:
    """Checks credentials in environment variables and files. No network, no keyring, no writing. Blocking."""

    def __init__(self, installations: InstallationResolver | None = None) -> None:
        """Check these installations; default: those that this process finds."""
        self._installations = installations if installations is not None else InstallationResolver()

    def check(self, agent: str, *, now_ms: int | None = None) -> AuthState:
        """Return the state of one agent's credentials.

        Args:
            agent: Name or alias.
            now_ms: The time at which credentials may have expired; default: now.

        Raises:
            AgentMuxError: AGENT_NOT_FOUND; CAPABILITY_ERROR if the adapter does not describe authentication.
        """
        adapter, auth = self._installations.find(agent, lambda parts: parts.auth, "authentication checks")
        return self._state(adapter.agent, auth, _now() if now_ms is None else now_ms)

    def check_all(self, *, now_ms: int | None = None) -> list[AuthState]:
        """Return the states of all agents whose adapters describe authentication, sorted by name."""
        now = _now() if now_ms is None else now_ms
        known = [(adapter.agent, adapter.installation().auth) for adapter in self._installations.adapters]
        return [self._state(agent, auth, now) for agent, auth in sorted(known) if auth is not None]

    def setup(self, agent: str) -> tuple[SetupStep, ...]:
        """Return the ways to authenticate an agent. Raises like `check`."""
        return self._installations.find(agent, lambda parts: parts.auth, "authentication setup")[1].steps

    def _state(self, agent: str, auth: AgentAuth, now: int) -> AuthState:
        problems: list[str] = []
        found = list(self._find_evidence(auth, problems))
        for method, evidence in found:
            if evidence.expires_at is None or evidence.expires_at > now:
                return AuthState(agent=agent, status="authenticated", method=method.name, where=evidence.where,
                                 expires_at=evidence.expires_at)  # fmt: skip
        if found:
            method, evidence = found[0]
            return AuthState(agent=agent, status="expired", method=method.name, where=evidence.where,
                             expires_at=evidence.expires_at)  # fmt: skip
        elsewhere = auth.elsewhere(self._installations.paths())
        problems += [f"it may be in {elsewhere}"] if elsewhere else []
        status: AuthStatus = "unknown" if problems else "unauthenticated"
        return AuthState(agent=agent, status=status, problem="; ".join(problems) or None)

    def _find_evidence(self, auth: AgentAuth, problems: list[str]) -> Iterator[tuple[AuthMethod, FoundCredentials]]:
        """Yield the credentials that were found, in the agent's order of preference; add errors to `problems`."""
        for method in auth.methods:
            name = next((name for name in method.variables if self._installations.environ.get(name)), None)
            if name is not None:
                yield method, FoundCredentials(where=name)
            if method.find is None:
                continue
            try:
                evidence = method.find(self._installations.paths())
            except (OSError, ValueError, AgentMuxError) as error:
                problems.append(f"{method.display_name}: {error}")
                continue
            if evidence is not None:
                yield method, evidence


def _now() -> int:
    import time  # noqa: PLC0415  # the only use of the clock

    return time.time_ns() // 1_000_000
