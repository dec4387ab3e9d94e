"""Stored sessions as events: as lawful as those of a run, and as they come while the agent still writes."""

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sessions.written import START, sessions_in, written

from agent_mux import validate
from agent_mux.sessions import events as session_events

TURN = [
    {"prompt": "hi", "at": START}, {"text": "hello", "at": START + 10}, {"tool": "Look", "input": {}},
    {"result": "Look", "output": 1}, {"call": "a", "model": "big", "tokens": [10, 1]},
    {"call": "a", "model": "big", "tokens": [10, 2]}, {"text": "done", "at": START + 20}, {"done": True},
]  # fmt: skip
OTHER = [{"prompt": "again", "at": START + 30}, {"text": "half", "at": START + 40}]


def test_the_events_are_those_of_a_run(tmp_path: Path) -> None:
    written(tmp_path, "one", *TURN, *OTHER)
    events = list(sessions_in(tmp_path).events("one"))
    assert validate(events) == []
    types = [event.type for event in events]
    assert types[0] == "session_start"
    assert types.count("turn_start") == types.count("turn_end") == 2
    said: Any = [event for event in events if event.type == "message_stop"]
    assert [event.text for event in said] == ["hello", "done", "half"]
    assert [event.timestamp for event in said] == [START + 10, START + 20, START + 40]
    counted: Any = [event for event in events if event.type == "token_usage"]
    assert [(event.input_tokens, event.output_tokens) for event in counted] == [(10, 2)]  # the last word of one call
    assert events == list(sessions_in(tmp_path).events("one"))  # ids and all


@given(rows=st.lists(st.sampled_from([*TURN, *OTHER, {"spent": 1.0}, {"call": "", "model": "", "tokens": [1, 1]}])))
def test_whatever_was_stored_the_contract_is_kept(rows: list[dict[str, Any]], tmp_path_factory: Any) -> None:
    directory = tmp_path_factory.mktemp("store")
    written(directory, "one", {"prompt": "x"}, *rows)
    assert validate(list(sessions_in(directory).events("one"))) == []


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """One for each look at the file: with the second one, what the first one found has been read."""
    looked: list[Path] = []
    original = session_events._state_of

    def counted(path: Path) -> Any:
        looked.append(path)
        return original(path)

    monkeypatch.setattr(session_events, "_state_of", counted)
    monkeypatch.setattr(session_events, "POLL_INTERVAL", 0.001)
    return looked


async def texts_of(events: Any, count: int) -> list[str]:
    """The next messages."""
    said: list[str] = []
    async for event in events:
        if event.type == "message_stop":
            said.append(event.text)
        if len(said) == count:
            break
    return said


@pytest.mark.anyio
async def test_a_session_is_followed_while_it_is_written(tmp_path: Path) -> None:
    path = written(tmp_path, "one", *TURN)
    events = sessions_in(tmp_path).watch("one")
    with anyio.fail_after(30):
        assert await texts_of(events, 2) == ["hello", "done"]
        with path.open("ab") as file:
            file.write(b"".join(msgspec.json.encode(row) + b"\n" for row in OTHER) + b'{"text": "cu')
        with path.open("ab") as file:
            file.write(b't"}\n{"prompt": "third"}\n')
        assert await texts_of(events, 2) == ["half", "cut"]


@pytest.mark.anyio
async def test_only_what_comes_next_can_be_followed(tmp_path: Path, looks: list[Path]) -> None:
    path = written(tmp_path, "one", *TURN)
    events = sessions_in(tmp_path).watch("one", from_start=False)
    said: list[str] = []

    async def follow() -> None:
        said.extend(await texts_of(events, 1))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            while len(looks) < 2:  # noqa: ASYNC110  # nobody tells
                await anyio.sleep(0.001)
            with path.open("ab") as file:
                file.write(b"".join(msgspec.json.encode(row) + b"\n" for row in (*OTHER, {"prompt": "third"})))
    assert said == ["half"]
