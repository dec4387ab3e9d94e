"""Runs of the scripted agent, checked from start to end. Every wait is bounded."""

from pathlib import Path
from typing import Any

import anyio
from tests.process.scripted import MakeClient, ScriptedCodec

from agent_mux import RunResult, encode_event, validate
from agent_mux.run.derivation import derive_events
from agent_mux.run.handle import RunHandle


async def run_to_end(make_client: MakeClient, body: str, **fields: Any) -> tuple[list[Any], RunResult]:
    with anyio.fail_after(20):
        async with make_client(body) as mux:
            return await watch(mux.run(**{"prompt": "hi", **fields}))


async def watch(run: RunHandle) -> tuple[list[Any], RunResult]:
    events = [event async for event in run]
    result = await run
    assert validate(events) == []
    assert result.journal is not None
    derived = [encode_event(event) for event in derive_events(Path(result.journal), ScriptedCodec)]
    assert derived == [encode_event(event) for event in events]
    return events, result


def types(events: list[Any], *wanted: str) -> list[str]:
    return [event.type for event in events if event.type in wanted]
