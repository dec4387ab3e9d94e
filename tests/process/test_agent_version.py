"""The version of the agent's program in runs: in the result, the stream, the journal and the errors."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.process.scripted import MakeClient

from agent_mux import RunOptions, RunResult
from agent_mux.journal.file import JournalReader

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]

HELLO = "read(); emit(session='S1'); emit(text='hello'); emit(done=True); drain()"


def packaged(directory: Path, version: str) -> dict[str, str]:
    """Install the scripted agent as an npm package. Return the environment with which a run finds it."""
    package = directory / "node_modules" / "scripted"
    package.mkdir(parents=True)
    (package / "package.json").write_text(f'{{"name": "scripted", "version": "{version}"}}')
    program = package / "cli"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return {"AMUX_SCRIPTED_EXECUTABLE": str(program)}


async def finished(make_client: MakeClient, body: str, env: dict[str, str]) -> tuple[list[Any], RunResult]:
    async with make_client(body) as mux:
        run = mux.run(RunOptions(agent="scripted", prompt="x", env=env))
        events = [event async for event in run]
        return events, await run


async def test_result_stream_and_journal_have_the_version(make_client: MakeClient, tmp_path: Path) -> None:
    events, result = await finished(make_client, HELLO, packaged(tmp_path, "3.12.0"))
    assert (result.exit_reason, result.agent_version) == ("completed", "3.12.0")
    [start] = [event for event in events if event.type == "session_start"]
    assert start.agent_version == "3.12.0"
    assert [event.level for event in events if event.type == "debug"] == ["info"]
    assert RunResult.from_dict(result.to_dict()).agent_version == "3.12.0"
    assert result.journal is not None
    assert JournalReader(Path(result.journal)).header.stream.agent_version == "3.12.0"


async def test_crash_of_an_older_version_names_it_and_the_next_step(make_client: MakeClient, tmp_path: Path) -> None:
    body = "sys.stderr.write('unknown option\\n'); sys.exit(2)"
    _, result = await finished(make_client, body, packaged(tmp_path, "2.0.0"))
    assert result.error is not None
    assert result.error.message.startswith("Scripted 2.0.0 exited with code 2")
    assert result.error.message.endswith(
        "(version 2.0.0 is older than the tested range, 3.11; update it: amux update scripted)"
    )


async def test_version_that_is_not_known_is_absent(make_client: MakeClient) -> None:
    events, result = await finished(make_client, HELLO, {})
    assert result.agent_version is None
    assert "agentVersion" not in result.to_dict()
    assert [event for event in events if event.type == "debug"] == []
