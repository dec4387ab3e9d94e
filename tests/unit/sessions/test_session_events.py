"""Stored sessions as events: the streams conform, and grow while the agent writes."""

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sessions.scripted_store import START, sessions_in, write_session

from agent_mux import AgentMuxError, validate
from agent_mux.sessions import events as session_events

TURN = [
    {"prompt": "hi", "at": START}, {"text": "hello", "at": START + 10}, {"tool": "Look", "input": {}},
    {"result": "Look", "output": 1}, {"call": "a", "model": "big", "tokens": [10, 1]},
    {"call": "a", "model": "big", "tokens": [10, 2]}, {"text": "done", "at": START + 20}, {"done": True},
]  # fmt: skip
OTHER = [{"prompt": "again", "at": START + 30}, {"text": "half", "at": START + 40}]


def test_a_session_yields_the_events_of_a_run(tmp_path: Path) -> None:
    write_session(tmp_path, "one", *TURN, *OTHER)
    events = list(sessions_in(tmp_path).events("one"))
    assert validate(events) == []
    types = [event.type for event in events]
    assert types[0] == "session_start"
    assert types.count("turn_start") == types.count("turn_end") == 2
    texts: Any = [event for event in events if event.type == "message_stop"]
    assert [event.text for event in texts] == ["hello", "done", "half"]
    assert [event.timestamp for event in texts] == [START + 10, START + 20, START + 40]
    counted: Any = [event for event in events if event.type == "token_usage"]
    assert [(event.input_tokens, event.output_tokens) for event in counted] == [(10, 2)]  # the last word of one call
    assert events == list(sessions_in(tmp_path).events("one"))  # ids and all


@given(rows=st.lists(st.sampled_from([*TURN, *OTHER, {"spent": 1.0}, {"call": "", "model": "", "tokens": [1, 1]}])))
def test_any_stored_session_yields_a_conforming_stream(rows: list[dict[str, Any]], tmp_path_factory: Any) -> None:
    directory = tmp_path_factory.mktemp("store")
    write_session(directory, "one", {"prompt": "x"}, *rows)
    assert validate(list(sessions_in(directory).events("one"))) == []


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list with one entry per poll of the file. At the second poll, the result of the first has been read."""
    polled: list[Path] = []
    original = session_events._state_of

    def counted(path: Path) -> Any:
        polled.append(path)
        return original(path)

    monkeypatch.setattr(session_events, "_state_of", counted)
    monkeypatch.setattr(session_events, "POLL_INTERVAL", 0.001)
    return polled


async def texts_of(events: Any, count: int) -> list[str]:
    """Return the texts of the next messages."""
    texts: list[str] = []
    async for event in events:
        if event.type == "message_stop":
            texts.append(event.text)
        if len(texts) == count:
            break
    return texts


@pytest.mark.anyio
async def test_watch_yields_events_while_the_session_is_written(tmp_path: Path) -> None:
    path = write_session(tmp_path, "one", *TURN)
    events = sessions_in(tmp_path).watch("one")
    with anyio.fail_after(30):
        assert await texts_of(events, 2) == ["hello", "done"]
        with path.open("ab") as file:
            file.write(b"".join(msgspec.json.encode(row) + b"\n" for row in OTHER) + b'{"text": "cu')
        with path.open("ab") as file:
            file.write(b't"}\n{"prompt": "third"}\n')
        assert await texts_of(events, 2) == ["half", "cut"]


@pytest.mark.anyio
async def test_watch_can_skip_the_stored_events(tmp_path: Path, polls: list[Path]) -> None:
    path = write_session(tmp_path, "one", *TURN)
    events = sessions_in(tmp_path).watch("one", from_start=False)
    texts: list[str] = []

    async def follow() -> None:
        texts.extend(await texts_of(events, 1))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            while len(polls) < 2:  # noqa: ASYNC110  # the watcher has no signal
                await anyio.sleep(0.001)
            with path.open("ab") as file:
                file.write(b"".join(msgspec.json.encode(row) + b"\n" for row in (*OTHER, {"prompt": "third"})))
    assert texts == ["half"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda path: path.unlink(), "was removed while it was followed"),
        (lambda path: (path.unlink(), path.mkdir()), "can no longer be read"),  # root reads any file
    ],
)
async def test_watching_ends_when_the_session_is_gone(tmp_path: Path, change: Any, reason: str) -> None:
    path = write_session(tmp_path, "one", *TURN)
    events = sessions_in(tmp_path).watch("one")
    with anyio.fail_after(30):
        assert await texts_of(events, 2) == ["hello", "done"]
        change(path)
        with pytest.raises(AgentMuxError, match=reason) as caught:
            await texts_of(events, 1)
    assert caught.value.code == "SESSION_NOT_FOUND"
