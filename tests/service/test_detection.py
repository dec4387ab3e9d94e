"""Concurrent requests share one detection of installed agents."""

import anyio
import pytest

from agent_mux.agents.detection import DetectedAgent, Detector
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.service import SharedDetection

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as the service


class Counting(Detector):
    """Looks nowhere; knows how often it was asked to."""

    def __init__(self) -> None:
        super().__init__(AdapterRegistry())
        self.looks = self.forgotten = self.at_once = self.most_at_once = 0

    def forget(self) -> None:
        self.forgotten += 1

    async def detect_all(self) -> list[DetectedAgent]:
        self.looks += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await anyio.lowlevel.checkpoint()
        self.at_once -= 1
        return [DetectedAgent("wombat", "Wombat", False)]


@pytest.mark.parametrize("fresh", [False, True])
async def test_one_look_at_a_time(fresh: bool) -> None:
    detector = Counting()
    detection = SharedDetection(detector)
    found: list[str] = []

    async def ask() -> None:
        found.extend(await detection.all(fresh=fresh))

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask)
    assert found == ["wombat"] * 10
    assert detector.most_at_once == 1


async def test_who_waited_for_a_fresh_look_shares_it() -> None:
    detector = Counting()
    detection = SharedDetection(detector)
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(lambda: detection.all(fresh=True))
    assert detector.forgotten == 1  # the look of the first began when all had asked
    await detection.all(fresh=True)
    assert detector.forgotten == 2
