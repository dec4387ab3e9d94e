"""Approvals and questions over the agents' own protocols."""

import re
from typing import Any

import pytest
from tests.e2e.harness import FinishedRun, LiveAgent, finish
from tests.e2e.request_fields import messages_after_last_answer
from tests.e2e.ways import ALL_AGENTS, CORE, HEAVY, ON_BOTH_LOOPS

from agent_mux import AgentMuxError, Approve, Choice, Deny, PendingInteraction, Policy, RunHandle, Text
from agent_mux.sdk.interactions import ApprovalDetail, InputDetail
from agent_mux_testing.live import Ask, Edit, Mcp, Read, Say, Shell, Write

pytestmark = pytest.mark.anyio
DECISIONS = ("approval_request", "approval_granted", "approval_denied")


async def pending(run: RunHandle, number: int = 1) -> PendingInteraction:
    """Wait for an interaction of the run, by default the first one, and return it."""
    async for event in run:
        if event.type in {"approval_request", "input_required"}:
            number -= 1
            if number:
                continue
            (waiting,) = run.interaction.pending
            assert waiting.id == event.interaction_id
            return waiting
    raise AssertionError("the run ended without an interaction")


def approval(waiting: PendingInteraction) -> ApprovalDetail:
    """Return the detail of an approval request."""
    assert isinstance(waiting.detail, ApprovalDetail)
    return waiting.detail


def order(done: FinishedRun, *types: str) -> list[str]:
    return done.types(*DECISIONS, *types)


@CORE
@ALL_AGENTS
@ON_BOTH_LOOPS
async def test_approve(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made; echo yes", asks=True)), live.answer(Say("Made it.")))
    async with live.running(approval_mode="prompt") as run:
        waiting = await pending(run)
        assert waiting.type == "approval"
        assert "touch made" in approval(waiting).detail
        assert not live.file("made").exists()
        await run.interaction.respond(waiting.id, Approve())
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert live.file("made").exists()
    assert order(done, "shell_exit", "tool_result", "tool_error") == [
        "approval_request", "approval_granted", "shell_exit", "tool_result",
    ]  # fmt: skip
    assert done.one("approval_granted").interaction_id == done.one("approval_request").interaction_id
    assert done.one("approval_request").risk_level in {"medium", "high"}
    assert live.model.received("yes")
    assert done.result.text == "Made it."
    live.assert_usage(done, calls=2)


@CORE
@ALL_AGENTS
@ON_BOTH_LOOPS
async def test_deny(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("As you like.")))
    async with live.running(approval_mode="prompt") as run:
        await pending(run)
        await run.deny("not in my house")
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert not live.file("made").exists()
    assert order(done, "tool_result", "tool_error") == ["approval_request", "approval_denied", "tool_error"]
    assert done.one("approval_denied").reason == "not in my house"
    assert len(live.model.requests) == 2  # the model received the denial and continued
    assert re.search("reject|not in my house|denied|cancel", messages_after_last_answer(live.model.requests[-1].body))
    assert done.result.text == "As you like."


@ALL_AGENTS
async def test_deny_reason_reaches_the_model(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("As you like.")))
    async with live.running(approval_mode="prompt") as run:
        await pending(run)
        await run.deny("not in my house")
    await finish(run)
    assert live.model.received("not in my house")


async def test_approve_file_change(live: LiveAgent) -> None:
    note = ".git/note.txt"  # agents protect files of git
    live.script(live.answer(Write(note, "new\n")), live.answer(Say("Made it.")))
    async with live.running(approval_mode="prompt") as run:
        waiting = await pending(run)
        assert note in approval(waiting).detail
        await run.approve()
    done = await finish(run)
    assert live.file(note).read_text() == "new\n"
    assert order(done, "file_create") == ["approval_request", "approval_granted", "file_create"]


@ALL_AGENTS
async def test_approval_of_an_edit_has_the_diff(live: LiveAgent) -> None:
    live.file("notes.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    live.script(
        live.answer(Read("notes.txt")), live.answer(Edit("notes.txt", "four", "FOUR")), live.answer(Say("Changed."))
    )
    shown: list[ApprovalDetail] = []

    def decide(waiting: PendingInteraction) -> bool:
        shown.append(approval(waiting))
        return True

    done = await live.run(approval_mode="prompt", policy=Policy(), on_approval_request=decide)
    assert "FOUR" in live.file("notes.txt").read_text()
    details = [one for one in shown if one.diff]
    assert len(details) == 1
    detail = details[0]
    assert detail.diff is not None
    header, position, hunk = detail.diff.split("@@")
    assert "+++ b/notes.txt\n" in header
    assert position in {" -1,5 +1,5 ", " -3,3 +3,3 "}  # lines of the file, not of the replaced text
    assert "\n-four\n+FOUR\n five\n" in hunk
    assert any("notes.txt" in path for path in detail.paths)
    assert detail.tool_input
    (request,) = [event for event in done.all("approval_request") if event.diff]
    assert (request.diff, request.tool_input) == (detail.diff, detail.tool_input)


@ALL_AGENTS
async def test_approve_always(live: LiveAgent) -> None:
    same = live.answer(Shell("touch made", asks=True))
    live.script(same, same, live.answer(Say("Twice.")))
    done = await live.run(approval_mode="prompt", on_approval_request=lambda _: Approve(always=True))
    assert done.result.exit_reason == "completed"
    assert len(done.all("approval_request")) == 1  # the second call needs no approval
    assert len(done.all("tool_result")) == 2


async def test_approve_parallel(live: LiveAgent) -> None:
    live.script(
        live.answer(Shell("touch first", asks=True), Shell("touch second", asks=True)), live.answer(Say("Done.")),
    )  # fmt: skip
    asked: list[str] = []

    def decide(waiting: PendingInteraction) -> Approve | Deny:
        asked.append(waiting.description)
        return Approve() if "first" in approval(waiting).detail else Deny("one is enough")

    done = await live.run(approval_mode="prompt", on_approval_request=decide)
    assert len(asked) == 2
    assert live.file("first").exists()
    assert not live.file("second").exists()
    assert sorted(done.types("tool_result", "tool_error")) == ["tool_error", "tool_result"]


async def pending_count(run: RunHandle, count: int) -> None:
    """Wait until this number of requests is open at the same time."""
    async for _ in run:
        if len(run.interaction.pending) == count:
            return
    raise AssertionError(f"the run ended without {count} open requests")


@HEAVY  # agents that ask one after the other are found by a timeout
@ALL_AGENTS
async def test_approvals_answered_in_reverse_order(live: LiveAgent) -> None:
    """Three requests are open at once; the answer to each reaches its own command."""
    names = ("first", "second", "third")
    live.script(
        live.answer(*(Shell(f"touch {name}", asks=True) for name in names)), live.answer(Say("Done.")),
    )  # fmt: skip
    async with live.running(approval_mode="prompt") as run:
        await pending_count(run, 3)
        for waiting in reversed(run.interaction.pending):
            is_second = "touch second" in approval(waiting).detail
            await run.interaction.respond(waiting.id, Deny("not this one") if is_second else Approve())
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert [live.file(name).exists() for name in names] == [True, False, True]
    assert sorted(done.types("approval_granted", "approval_denied")) == ["approval_denied", *["approval_granted"] * 2]
    assert sorted(done.types("tool_result", "tool_error")) == ["tool_error", "tool_result", "tool_result"]
    assert done.result.text == "Done."


@ALL_AGENTS
async def test_approval_left_to_its_deadline(live: LiveAgent) -> None:
    """The first request is answered, the second is not: it is denied at its deadline, and the agent continues."""
    live.script(
        live.answer(Shell("touch first", asks=True)), live.answer(Shell("touch second", asks=True)),
        live.answer(Say("Done.")),
    )  # fmt: skip
    async with live.running(approval_mode="prompt", approval_timeout=2.0) as run:
        async for event in run:
            if event.type == "approval_request":
                await run.approve()
                break
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert [live.file(name).exists() for name in ("first", "second")] == [True, False]
    assert done.types(*DECISIONS) == ["approval_request", "approval_granted", "approval_request", "approval_denied"]
    assert "2" in done.one("approval_denied").reason
    assert done.result.text == "Done."


@ALL_AGENTS
async def test_approval_after_the_abort_is_refused(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)))
    async with live.running(approval_mode="prompt") as run:
        waiting = await pending(run)
        await run.abort()
        with pytest.raises(AgentMuxError) as refused:
            await run.interaction.respond(waiting.id, Approve())
        assert refused.value.code == "RUN_NOT_ACTIVE"
    done = await finish(run)
    assert done.result.exit_reason == "aborted"
    assert order(done, "aborted") == ["approval_request", "approval_denied", "aborted"]
    assert not live.file("made").exists()
    assert live.processes() == []


@ALL_AGENTS
async def test_mode_deny(live: LiveAgent) -> None:
    called: list[Any] = []
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("As you like.")))
    done = await live.run(approval_mode="deny", on_approval_request=called.append)
    assert done.result.exit_reason == "completed"
    assert not live.file("made").exists()
    assert called == []
    assert order(done, "tool_result", "tool_error") == ["approval_denied", "tool_error"]
    [denial] = done.result.denials
    assert "touch made" in denial.detail
    assert (done.result.tool_calls, done.result.tool_errors) == (1, 1)
    assert done.result.changed_files == ()
    assert done.result.model_calls in {len(live.model.requests), None}


@ALL_AGENTS
async def test_mode_yolo_asks_nothing(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made")), live.answer(Say("Made it.")))
    done = await live.run(approval_mode="yolo")
    assert live.file("made").exists()
    assert order(done) == []
    assert (done.result.denials, done.result.tool_calls, done.result.tool_errors) == ((), 1, 0)


async def test_approve_mcp_tool(live: LiveAgent) -> None:
    live.script(live.answer(Mcp("echo", {"text": "ping"})), live.answer(Say("Done.")))
    async with live.running(approval_mode="prompt", mcp_servers=[live.mcp_server]) as run:
        waiting = await pending(run)
        assert approval(waiting).tool_name is not None
        assert "echo" in waiting.description
        await run.approve()
    done = await finish(run)
    assert order(done, "mcp_tool_result", "mcp_tool_error")[-1] == "mcp_tool_result"
    assert live.model.received("echo: ping")


@ALL_AGENTS
async def test_question_answered(live: LiveAgent) -> None:
    live.script(live.answer(Ask("Which one?", ("Red", "Blue"))), live.answer(Say("Blue it is.")))
    async with live.running(approval_mode="prompt") as run:
        waiting = await pending(run)
        assert waiting.type == "input"
        assert isinstance(waiting.detail, InputDetail)
        assert waiting.detail.question == "Which one?"
        assert waiting.detail.options[:2] == ("Red", "Blue")
        await run.interaction.respond(waiting.id, Choice(1))
        with pytest.raises(AgentMuxError, match="answered already"):
            await run.interaction.respond(waiting.id, Choice(1))
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.one("input_required").question == "Which one?"
    assert live.model.received("Blue")
    assert messages_after_last_answer(live.model.requests[-1].body).count("Blue") >= 1
    assert done.result.text == "Blue it is."


async def test_question_answered_with_text(live: LiveAgent) -> None:
    live.script(live.answer(Ask("Which one?", ("Red", "Blue"))), live.answer(Say("Green it is.")))
    done = await live.run(approval_mode="prompt", on_input_required=lambda _: Text("Green, if you please"))
    assert done.result.exit_reason == "completed"
    assert "Green, if you please" in messages_after_last_answer(live.model.requests[-1].body)


async def test_question_declined(live: LiveAgent) -> None:
    live.script(live.answer(Ask("Which one?", ("Red", "Blue"))), live.answer(Say("Then none.")))
    async with live.running(approval_mode="prompt") as run:
        waiting = await pending(run)
        await run.interaction.respond(waiting.id, Deny("I do not care"))
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.result.text == "Then none."
    assert len(live.model.requests) == 2
