"""A service without HTTP, in this event loop, whose agent is the scripted one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.process.scripted import scripted_adapter

from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.service import Service, open_service
from agent_mux.service.settings import ServiceSettings

QUICK = 'read(); emit(session="s"); emit(text="hello"); emit(over=True); emit(done=True); drain()'
FOR_EVER = 'read(); emit(session="s"); emit(text="hello"); time.sleep(1000)'
HI = {"agent": "scripted", "prompt": "hi"}


@asynccontextmanager
async def opened(directory: Path, body: str = QUICK, **chosen: Any) -> AsyncIterator[Service]:
    """`chosen`: fields of `ServiceSettings`."""
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter(body))
    async with open_service(ServiceSettings(config_dir=directory, **chosen), adapters) as service:
        yield service


async def finished(service: Service, run_id: str) -> None:
    """Wait until it is over, and written."""
    await service.streams.result(run_id)
    await service.runs.wait_released(*(live.row.run_id for live in service.runs.alive))
    assert await service.runs.flush()


async def events_of(service: Service, run_id: str) -> list[Any]:
    """All of them."""
    return [event async for _, events in service.streams.batches(run_id, 0) for event in events]
