"""Who is authenticated, on one object: files and variables are looked at, no more. Source: run API, section 7."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agent_mux.agents.installations import InstallationResolver
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.installation import AgentAuth, AuthMethod, Evidence, SetupStep

AuthStatus = Literal["authenticated", "expired", "unauthenticated", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthState:
    """What is known of an agent's credentials. Never the credentials."""

    agent: str
    status: AuthStatus
    """`unknown`: they may be where nobody looks here."""
    method: str | None = None
    where: str | None = None
    """The variable or the file that holds them."""
    expires_at: int | None = None
    """Milliseconds since the epoch."""
    problem: str | None = None
    """A file that could not be read, or where else they may be."""


class Auth:
    """Looks for credentials: no network, no keyring, nothing is written, nothing is asked. Blocking."""

    def __init__(self, homes: InstallationResolver | None = None) -> None:
        """Take where to look; default: what this process would find."""
        self._homes = homes if homes is not None else InstallationResolver()

    def check(self, agent: str, *, now_ms: int | None = None) -> AuthState:
        """What is known of one agent. `now_ms`: the time that decides what is expired; default: now.

        Raises AGENT_NOT_FOUND; CAPABILITY_ERROR where nothing is known of how it is authenticated.
        """
        adapter, auth = self._homes.find(agent, lambda home: home.auth, "authentication that can be looked for")
        return self._state(adapter.agent, auth, _now() if now_ms is None else now_ms)

    def check_all(self, *, now_ms: int | None = None) -> list[AuthState]:
        """Of every agent that can be authenticated, sorted by name."""
        now = _now() if now_ms is None else now_ms
        known = [(adapter.agent, adapter.home().auth) for adapter in self._homes.adapters]
        return [self._state(agent, auth, now) for agent, auth in sorted(known) if auth is not None]

    def setup(self, agent: str) -> tuple[SetupStep, ...]:
        """What a person can do to be authenticated. Errors as for `check`."""
        return self._homes.find(agent, lambda home: home.auth, "authentication that is known")[1].steps

    def _state(self, agent: str, auth: AgentAuth, now: int) -> AuthState:
        problems: list[str] = []
        found = list(self._found(auth, problems))
        for method, evidence in found:
            if evidence.expires_at is None or evidence.expires_at > now:
                return AuthState(agent=agent, status="authenticated", method=method.name, where=evidence.where,
                                 expires_at=evidence.expires_at)  # fmt: skip
        if found:
            method, evidence = found[0]
            return AuthState(agent=agent, status="expired", method=method.name, where=evidence.where,
                             expires_at=evidence.expires_at)  # fmt: skip
        elsewhere = auth.elsewhere(self._homes.place())
        problems += [f"it may be in {elsewhere}"] if elsewhere else []
        status: AuthStatus = "unknown" if problems else "unauthenticated"
        return AuthState(agent=agent, status=status, problem="; ".join(problems) or None)

    def _found(self, auth: AgentAuth, problems: list[str]) -> Iterator[tuple[AuthMethod, Evidence]]:
        for method in auth.methods:
            name = next((name for name in method.variables if self._homes.environ.get(name)), None)
            if name is not None:
                yield method, Evidence(where=name)
            if method.find is None:
                continue
            try:
                evidence = method.find(self._homes.place())
            except (OSError, ValueError, AgentMuxError) as error:
                problems.append(f"{method.display_name}: {error}")
                continue
            if evidence is not None:
                yield method, evidence


def _now() -> int:
    import time  # noqa: PLC0415  # the clock is asked here only

    return time.time_ns() // 1_000_000
