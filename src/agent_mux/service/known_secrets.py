"""Secrets that the service knows, hidden in the sessions that agents stored.

A run's own recording is redacted while it is written. The agent's session file is not ours, and contains what a tool
printed as it was printed.
"""

import os
from collections.abc import Mapping, Sequence

from agent_mux.redaction import Redactor, secret_values, secrets_of_servers
from agent_mux.sdk.options import McpServer

MAX_VALUES = 500
"""Secrets of runs that are remembered; the search takes longer with each. The oldest are forgotten first."""


class KnownSecrets:
    """Secrets by form, those of the service's environment, and those of the runs that this process started."""

    def __init__(self) -> None:
        self._values: dict[str, None] = dict.fromkeys(secret_values(os.environ))
        self._environment_count = len(self._values)
        self._redactor = Redactor(self._values)

    def add_run(self, env: Mapping[str, str], servers: Sequence[McpServer]) -> None:
        """Remember the secrets of a run's options, in memory only: no request is stored with its secrets."""
        new = (secret_values(env) | secrets_of_servers(servers)) - self._values.keys()
        if new:
            names = [*self._values, *sorted(new)]
            own, of_runs = names[: self._environment_count], names[self._environment_count :]
            self._values = dict.fromkeys((*own, *of_runs[-MAX_VALUES:]))
            self._redactor = Redactor(self._values)

    def mask(self, data: bytes) -> bytes:
        """Return text or JSON with its secrets hidden. May be called in any thread."""
        return self._redactor.mask(data)

    def mask_text(self, text: str) -> str:
        """Return text with its secrets hidden. May be called in any thread."""
        return self._redactor.mask_text(text)
