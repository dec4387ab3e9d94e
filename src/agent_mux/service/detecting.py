"""Looking for agents on the machine, for many who ask: one look at a time, which all who waited for it share."""

import time
from collections.abc import Mapping

import anyio

from agent_mux.agents.detection import Detected, Detector


class Detecting:
    """What is installed, as far as the last look says."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self._lock = anyio.Lock()
        self._looked_at = float("-inf")

    async def all(self, *, fresh: bool = False) -> Mapping[str, Detected]:
        """Every agent, by name. `fresh`: nothing that was remembered when this was asked."""
        asked = time.monotonic()
        async with self._lock:
            if fresh and self._looked_at < asked:
                self._detector.forget()
                self._looked_at = time.monotonic()
            return {found.agent: found for found in await self._detector.detect_all()}
