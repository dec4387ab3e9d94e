"""The work of a turn grows linearly with its request after a long history; function calls are counted."""

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import WAIT, agent

import agent_loop
from agent_loop.hooks.contexts import HOOKS
from agent_loop.messages import Message, assistant, tool_message, user
from agent_loop.providers import ModelRequest, ModelResponse, OnChunk
from agent_loop.sessions.file_store import FileSessionStore
from agent_loop.sessions.session import LoopRecord, Session

pytestmark = pytest.mark.anyio

OURS = str(Path(agent_loop.__file__).parent)
TURNS = 6


class Counter:
    """Counts Python calls into `agent_loop` and resumed generators as a measure of a turn's work."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, frame: Any, event: str, _argument: object) -> None:
        self.calls += event == "call" and frame.f_code.co_filename.startswith(OURS)


class Marking(FakeProvider):
    """A provider that records the count at each request."""

    def __init__(self, counter: Counter) -> None:
        answers = [reply("I look.", calls("look", f"c{turn}")) for turn in range(TURNS)]
        super().__init__(*answers, reply("done"))
        self.marks: list[int] = []
        self._counter = counter

    async def respond(self, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        self.marks.append(self._counter.calls)
        return await super().respond(request, on_chunk)

    @property
    def turns(self) -> list[int]:
        """The calls of each turn but the first, which loads the history."""
        return [later - sooner for sooner, later in pairwise(self.marks[1:])]


def earlier(length: int) -> Session:
    """Return a session whose history has this number of messages."""
    history: list[Message] = []
    for number in range(length // 4):
        history += [user("look"), assistant("I look.", calls("look", f"old{number}"))]
        history += [tool_message(f"old{number}", "look", "seen"), assistant("I saw it.")]
    return Session(
        session_id="s", agent_id="a", loops=[LoopRecord(loop_id="s.a.1", status="completed", messages=history)]
    )


async def turns_behind(length: int, **known: Any) -> list[int]:
    """Return the work of each turn of a run after a history of this length."""
    counter = Counter()
    model = Marking(counter)
    one = agent(model, FakeTool("look"), session=earlier(length), **known)
    before = sys.getprofile()
    sys.setprofile(counter)
    try:
        with anyio.fail_after(WAIT):
            await one.run("go")
    finally:
        sys.setprofile(before)
    assert [len(request.messages) for request in model.requests[:2]] == [length + 1, length + 3]
    return model.turns


@pytest.mark.parametrize("watched", [False, True], ids=["plain", "with a handler of each hook"])
async def test_turn_after_a_long_history_is_linear_in_the_request(watched: bool) -> None:
    hooks = {name: lambda _: None for name in HOOKS} if watched else None
    short, double, fourfold = [sum(await turns_behind(length, hooks=hooks)) for length in (100, 200, 400)]
    assert fourfold - double <= 2 * (double - short)
    assert double - short <= 100 * 4 * (TURNS - 1), "a message is looked at four times in a turn at most"


async def test_late_turn_costs_only_the_added_messages_more() -> None:
    turns = await turns_behind(100)
    assert len(turns) == TURNS - 1
    growth = {later - sooner for sooner, later in pairwise(turns)}
    assert max(growth) <= 2 * 4, "two messages more, each looked at four times at most"


async def test_the_file_store_encodes_the_session_once_a_turn(tmp_path: Path) -> None:
    saved: list[int] = []

    class Counting(FileSessionStore):
        async def save(self, session: Session) -> None:
            saved.append(len(model.requests))
            await super().save(session)

    model = FakeProvider(*[reply("I look.", calls("look", f"c{turn}")) for turn in range(TURNS)], reply("done"))
    one = agent(model, FakeTool("look"), session=earlier(400), store=Counting(tmp_path))
    with anyio.fail_after(WAIT):
        await one.run("go")
    assert [saved.count(turn) for turn in range(1, TURNS + 1)] == [1] * TURNS
