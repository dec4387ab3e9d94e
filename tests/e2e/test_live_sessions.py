"""Several prompts in one session: within one run, or in consecutive runs."""

import pytest
from tests.e2e.harness import LiveAgent, finish, wait_for_event
from tests.e2e.ways import ALL_AGENTS, CORE, INTERACTIVE, ON_BOTH_LOOPS, TWO_WAY

from agent_mux import AgentMuxError
from agent_mux_testing.live import Say, Shell

pytestmark = pytest.mark.anyio
UNTIL_GO = "touch started; while [ ! -e go ]; do sleep 0.05; done"
WORK = {"interactive": True, "approval_mode": "yolo"}


@ALL_AGENTS
@ON_BOTH_LOOPS
async def test_multi_turn(live: LiveAgent) -> None:
    live.script(live.answer(Say("First answer.")), live.answer(Say("Second answer.")))
    async with live.running("first question", **INTERACTIVE) as run:
        await run.continue_("second question")
        await wait_for_event(run, "turn_end", 2)
        await run.close()
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.result.messages == ["First answer.", "Second answer."]
    assert done.result.text == "Second answer."
    assert [(event.type, event.turn_index) for event in done.events if event.type in {"turn_start", "turn_end"}] == [
        ("turn_start", 0), ("turn_end", 0), ("turn_start", 1), ("turn_end", 1),
    ]  # fmt: skip
    assert len(done.all("session_start")) == 1
    for text in ("first question", "First answer.", "second question"):
        assert live.model.received(text)
    live.assert_usage(done, calls=2)


async def test_send_in_the_middle_of_a_turn(live: LiveAgent) -> None:
    live.script(
        live.answer(Shell(UNTIL_GO)),
        live.answer(Say("Both heard.")),
        live.answer(Say("Both heard, in a turn of its own.")),
    )
    async with live.running("first question", **WORK) as run:
        await live.wait_for_file("started")
        delivery = await run.send("second question")
        live.file("go").touch()
        await wait_for_event(run, "turn_end")
        await run.close()
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.result.text == ("Both heard." if delivery == "merged" else "Both heard, in a turn of its own.")
    assert live.model.received("second question")


@ALL_AGENTS
async def test_queue(live: LiveAgent) -> None:
    """Each queued prompt gets its own turn, even with an agent that merges prompts."""
    live.script(
        live.answer(Shell(UNTIL_GO)),
        live.answer(Say("First answer.")),
        live.answer(Say("Second answer.")),
        live.answer(Say("Third answer.")),
    )
    async with live.running("first question", **WORK) as run:
        await live.wait_for_file("started")
        assert await run.queue("second question") == "queued"
        assert await run.queue("third question") == "queued"
        live.file("go").touch()
        await wait_for_event(run, "turn_end", 3)
        await run.close()
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.result.turn_count == 3
    assert [message for message in done.result.messages if message] == [
        "First answer.", "Second answer.", "Third answer.",
    ]  # fmt: skip
    assert live.model.received("third question")


@ALL_AGENTS
async def test_steer(live: LiveAgent) -> None:
    """A message for the current turn: the model gets it with the result of the tool, or in a later call."""
    live.script(
        live.answer(Shell(UNTIL_GO)),
        live.answer(Say("Done.")),
        live.answer(Say("Quickly.")),
    )
    async with live.running("begin", **WORK) as run:
        await live.wait_for_file("started")
        assert await run.steer("and be quick") == "merged"
        live.file("go").touch()
        await wait_for_event(run, "turn_end")
        await run.close()
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    # Copilot moves the command to the background; when it ends after the answer, Copilot begins another turn.
    assert done.result.turn_count <= 2
    assert done.result.messages in (["Done."], ["Done.", "Quickly."])
    assert live.model.received("and be quick")


async def test_interactive_without_prompt(live: LiveAgent) -> None:
    live.script(live.answer(Say("Here I am.")))
    async with live.running("", **INTERACTIVE) as run:
        await run.send("are you there?")
        await wait_for_event(run, "turn_end")
        await run.close()
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.result.text == "Here I am."
    assert live.model.received("are you there?")


@CORE
@ALL_AGENTS
@ON_BOTH_LOOPS
async def test_interrupt_then_continue(live: LiveAgent) -> None:
    live.script(live.answer(Say("A long text that hangs here."), hang=True), live.answer(Say("Continued.")))
    async with live.running("begin", **INTERACTIVE) as run:
        await wait_for_event(run, "text_delta")
        await run.interrupt()
        await wait_for_event(run, "turn_end")
        await run.send("go on")
        await wait_for_event(run, "turn_end", 2)
        await run.close()
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.result.text == "Continued."
    assert done.all("interrupted") == []  # this event would end the run
    stopped = done.one("error")
    assert (stopped.code, stopped.recoverable) == ("ABORTED", True)
    assert live.model.received("go on")


async def test_interrupt_tool(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch started; sleep 300")), live.answer(Say("Continued.")))
    async with live.running("begin", interactive=True) as run:
        await live.wait_for_file("started")
        await wait_for_event(run, "tool_call_ready")
        await run.interrupt()
        await wait_for_event(run, "turn_end")
        await run.send("go on")
        await wait_for_event(run, "turn_end", 2)
        await run.close()
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.types("tool_result", "tool_error") == ["tool_error"]
    assert done.result.text == "Continued."


@CORE
@ALL_AGENTS
@ON_BOTH_LOOPS
async def test_resume(live: LiveAgent) -> None:
    live.script(live.answer(Say("I shall remember 7.")), live.answer(Say("It was 7.")))
    first = await live.run("remember 7")
    second = await live.run("which number?", session_id=first.result.session_id)
    assert second.result.exit_reason == "completed"
    assert second.result.session_id == first.result.session_id
    assert second.one("session_start").resumed
    assert second.types("session_start", "session_resume", "turn_start")[:3] == [
        "session_start", "session_resume", "turn_start",
    ]  # fmt: skip
    assert second.result.messages == ["It was 7."]  # earlier messages are not repeated
    assert live.model.received("remember 7")
    assert live.model.received("I shall remember 7.")
    live.assert_usage(first, calls=1)


async def test_resume_costs_only_itself(live: LiveAgent) -> None:
    live.script(live.answer(Say("One.")), live.answer(Say("Two.")))
    first = await live.run(**TWO_WAY)
    second = await live.run(session_id=first.result.session_id, **TWO_WAY)
    live.assert_usage(second, calls=1)
    assert first.result.cost is not None
    assert second.result.cost is not None
    assert second.result.cost.total_usd == pytest.approx(first.result.cost.total_usd)


@ALL_AGENTS
async def test_named_session(live: LiveAgent) -> None:
    live.script(live.answer(Say("I shall remember 7.")), live.answer(Say("It was 7.")))
    first = await live.run("remember 7", session_name="numbers")
    second = await live.run("which number?", session_name="numbers")
    assert second.result.exit_reason == "completed"
    assert second.result.session_id == first.result.session_id
    assert live.model.received("I shall remember 7.")


async def test_resume_with_tools(live: LiveAgent) -> None:
    live.script(live.answer(Say("Hello.")), live.answer(Shell("touch made")), live.answer(Say("Made it.")))
    first = await live.run()
    second = await live.run(session_id=first.result.session_id)
    assert second.result.exit_reason == "completed"
    assert live.file("made").exists()  # a resumed session has the permissions of a new one


@ALL_AGENTS
@ON_BOTH_LOOPS
async def test_fork(live: LiveAgent) -> None:
    live.script(live.answer(Say("I shall remember 7.")), live.answer(Say("It was 7.")), live.answer(Say("Still 7.")))
    first = await live.run("remember 7")
    fork = await live.run("which number?", fork_session_id=first.result.session_id)
    assert fork.result.exit_reason == "completed"
    assert fork.result.session_id != first.result.session_id
    assert fork.one("session_start").forked_from == first.result.session_id
    assert fork.one("session_fork").forked_from == first.result.session_id
    assert live.model.received("I shall remember 7.")
    again = await live.run("and now?", session_id=first.result.session_id)
    assert again.result.session_id == first.result.session_id
    assert not live.model.received("which number?")  # the original session does not contain the fork


@ALL_AGENTS
async def test_resume_missing(live: LiveAgent) -> None:
    live.script(live.answer(Say("Never said.")))
    done = await live.run(session_id="00000000-0000-4000-8000-000000000000")
    assert done.result.exit_reason == "failed"
    assert done.result.error is not None
    assert done.result.error.code == "SESSION_NOT_FOUND"
    assert live.model.requests == []


async def test_no_session(live: LiveAgent) -> None:
    live.script(live.answer(Say("Forget me.")))
    done = await live.run("a secret question", no_session=True)
    assert done.result.text == "Forget me."
    kept = [path for path in live.home.rglob("*.jsonl") if "a secret question" in path.read_text("utf-8", "replace")]
    assert kept == []


async def test_send_to_a_one_shot_raises(live: LiveAgent) -> None:
    if "one_shot" not in live.kit.ways:
        pytest.skip(f"{live.agent} has no one-shot runs")
    live.script(live.answer(Say("Once."), pre_delay=0.5))
    async with live.running() as run:
        with pytest.raises(AgentMuxError) as refused:
            await run.send("and more")
        assert refused.value.code == "STDIN_NOT_AVAILABLE"
    assert (await finish(run)).result.text == "Once."
