"""The journal of a run contains everything that its readers saw."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.scripted import MakeClient, ScriptedCodec

from agent_mux import encode_event
from agent_mux.run.derivation import derive_events

pytestmark = pytest.mark.anyio

HELLO = "read(); emit(session='S1'); emit(text='hello '); emit(text='world'); emit(done=True); drain()"


def broken(_: Any) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("event_type", ["session_start", "text_delta", "session_end"])
async def test_handler_warning_is_derived_from_the_journal(make_client: MakeClient, event_type: str) -> None:
    with anyio.fail_after(20):
        async with make_client(HELLO) as mux:
            run = mux.run(prompt="hi", event_buffer_size=1)
            run.once(event_type, broken)
            await run
            late = [encode_event(event) async for event in run]
    assert any(b"ZeroDivisionError" in line for line in late)
    assert run.journal is not None
    assert [encode_event(event) for event in derive_events(Path(run.journal), ScriptedCodec)] == late


async def test_existing_file_is_neither_written_nor_read(make_client: MakeClient, tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text("mine")
    with anyio.fail_after(20):
        async with make_client(HELLO) as mux:
            run = mux.run(prompt="hi", event_buffer_size=1, journal=path)
            result = await run
            events = [event async for event in run]
    assert result.exit_reason == "completed"
    assert result.text == "hello world"
    assert result.journal is None
    assert path.read_text() == "mine"
    assert "were lost" in events[0].message
