"""Pending requests of an agent: each is answered exactly once."""

from typing import Any

import pytest
from tests.unit.run.scripted_run import RUN_ID

from agent_mux.assembler import OpenInteraction
from agent_mux.errors import AgentMuxError
from agent_mux.run.interaction import InteractionChannel, approval_text, to_action
from agent_mux.sdk import codec, facts
from agent_mux.sdk.interactions import ApprovalDetail, Approve, Choice, Deny, InputDetail, Response, Text

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def approval(number: int) -> OpenInteraction:
    asked = facts.ApprovalRequested(f"r{number}", "run", f"rm {number}", "high", "Bash")
    return OpenInteraction(
        interaction_id=f"i{number}", request_id=f"r{number}", kind="approval", asked=asked, created_at=5
    )


def question(number: int) -> OpenInteraction:
    asked = facts.InputRequested(f"r{number}", "Which?", "Colours", ("red", "blue"), "tool")
    return OpenInteraction(
        interaction_id=f"i{number}", request_id=f"r{number}", kind="input", asked=asked, created_at=6
    )


@pytest.mark.parametrize(("detail", "text"), [
    ("rm -rf /\necho", "Change: rm -rf /\necho"),
    ("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n", "Change: a.txt"),
    ("--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "Change: old"),
    ("/p/a.txt\ndiff --git a/p/a.txt b/p/a.txt\n--- a/p/a.txt\n+++ b/p/a.txt\n@@ -1 +1 @@\n", "Change: /p/a.txt"),
    ("/p/a.txt\ndiff --git a/p/a.txt b/p/a.txt\n--- a/dev/null\n+++ b/p/a.txt\n@@ -1,0 +1 @@\n", "Change: /p/a.txt"),
    ("Edit file\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-1\n+2\n", "Change: Edit file x.py"),
    ("{}", "Change"),
    ("", "Change"),
])  # fmt: skip
def test_text_of_an_approval_names_the_files_and_has_no_diff(detail: str, text: str) -> None:
    assert approval_text("Change", detail) == text


class Agent:
    """A fake agent with pending requests, which an action resolves."""

    def __init__(self, *waiting: OpenInteraction) -> None:
        self.waiting = list(waiting)
        self.answers: list[codec.AnyAction] = []
        self.channel = InteractionChannel(RUN_ID, lambda: tuple(self.waiting), self.act, lambda: None)

    async def act(self, action: Any) -> None:
        self.answers.append(action)
        self.waiting = [open_ for open_ in self.waiting if open_.request_id != action.request_id]


def test_pending_requests_are_listed_in_order() -> None:
    first, second = Agent(approval(1), question(2)).channel.pending
    assert (first.id, first.type, first.run_id, first.created_at) == ("i1", "approval", RUN_ID, 5)
    assert first.description == "run: rm 1"
    assert first.detail == ApprovalDetail("run", "rm 1", "Bash", "high")
    assert second.description == "Which?"
    assert second.detail == InputDetail("Which?", "Colours", ("red", "blue"), "tool")


@pytest.mark.parametrize(
    ("open_", "response", "action"),
    [
        (approval(1), Approve(), codec.ApproveAction("r1")),
        (approval(1), Approve(always=True), codec.ApproveAction("r1", True)),
        (approval(1), Deny("no"), codec.DenyAction("r1", "no")),
        (question(1), Deny(), codec.DenyAction("r1")),
        (question(1), Text("green"), codec.AnswerAction("r1", "green")),
        (question(1), Choice("blue"), codec.AnswerAction("r1", "blue")),
        (question(1), Choice(0), codec.AnswerAction("r1", "red")),
    ],
)
async def test_a_response_becomes_the_action_for_its_request(
    open_: OpenInteraction, response: Response, action: codec.AnyAction
) -> None:
    agent = Agent(approval(9), open_)
    await agent.channel.respond(open_.interaction_id, response)
    assert agent.answers == [action]


@pytest.mark.parametrize(
    ("open_", "response"),
    [
        (approval(1), Text("yes")),
        (approval(1), Choice(0)),
        (question(1), Approve()),
        (question(1), Choice(2)),
        (question(1), Choice(-1)),
    ],
)
def test_a_response_of_the_wrong_kind_is_refused(open_: OpenInteraction, response: Response) -> None:
    with pytest.raises(AgentMuxError, match="i1") as caught:
        to_action(open_, response)
    assert caught.value.code == "VALIDATION_ERROR"


async def test_the_second_answer_raises_not_found() -> None:
    agent = Agent(approval(1))
    await agent.channel.respond("i1", Approve())
    with pytest.raises(AgentMuxError) as caught:
        await agent.channel.respond("i1", Deny())
    assert caught.value.code == "INTERACTION_NOT_FOUND"
    assert len(agent.answers) == 1


async def test_approve_all_does_not_answer_questions() -> None:
    agent = Agent(approval(1), question(2), approval(3))
    assert await agent.channel.approve_all() == 2
    assert agent.answers == [codec.ApproveAction("r1"), codec.ApproveAction("r3")]
    assert [pending.id for pending in agent.channel.pending] == ["i2"]


async def test_deny_all_denies_questions_too() -> None:
    agent = Agent(approval(1), question(2))
    assert await agent.channel.deny_all("no time") == 2
    assert agent.answers == [codec.DenyAction("r1", "no time"), codec.DenyAction("r2", "no time")]
    assert await agent.channel.deny_all() == 0


def test_a_listener_can_be_removed() -> None:
    channel = Agent().channel
    heard: list[Any] = []
    stop = channel.on_pending(heard.append)
    assert len(channel.listeners()) == 1
    stop()
    stop()
    assert channel.listeners() == ()
