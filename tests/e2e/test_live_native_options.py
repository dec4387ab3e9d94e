"""Options that are bound to the agents' own flags, settings and protocol fields."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.harness import LiveAgent, finish
from tests.e2e.ways import ALL_AGENTS, CORE, HEAVY

from agent_mux import CapabilityError, RunHandle
from agent_mux_testing.live import Read, Say, Shell, Write, provider_error
from agent_mux_testing.live.probes import OptionName

pytestmark = pytest.mark.anyio
PLAN = "First read, then write."


def shell_tool(live: LiveAgent) -> str:
    """Return the name of the agent's shell tool, as a model calls it."""
    step = live.answer(Shell("true"))
    [name] = [block.name for block in step.blocks or () if hasattr(block, "name")] or [
        item.name for item in step.items or () if hasattr(item, "name")
    ]
    return str(name)


@CORE
@ALL_AGENTS
async def test_allowed_tool_runs_in_mode_deny(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("Made it.")))
    done = await live.run(approval_mode="deny", allowed_tools=[shell_tool(live)])
    assert done.result.exit_reason == "completed"
    assert live.file("made").exists()
    assert done.types("approval_denied") == []


@CORE
@ALL_AGENTS
async def test_disallowed_tool_does_not_run_in_mode_yolo(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made")), live.answer(Say("As you like.")))
    done = await live.run(disallowed_tools=[shell_tool(live)])
    assert done.result.exit_reason == "completed"
    assert done.result.text == "As you like."
    assert not live.file("made").exists()


@CORE
@ALL_AGENTS
async def test_plan_mode_changes_nothing(live: LiveAgent) -> None:
    live.script(live.answer(Write("note.txt", "new\n")), live.answer(Say(PLAN)))
    done = await live.run(approval_mode="plan")
    assert done.result.exit_reason == "completed"
    assert done.result.text == PLAN
    assert not live.file("note.txt").exists()
    assert any("plan mode" in str(one.body).lower() for one in live.model.requests)


@ALL_AGENTS
async def test_file_in_a_further_directory_is_read_unasked(live: LiveAgent, tmp_path: Path) -> None:
    further = tmp_path / "further"
    further.mkdir()
    (further / "fact.txt").write_text("the moon is round\n")
    live.script(live.answer(Read(str(further / "fact.txt"))), live.answer(Say("Read it.")))
    done = await live.run(approval_mode="prompt", add_dirs=[further], on_approval_request=lambda _: False)
    assert done.result.exit_reason == "completed"
    assert live.model.received("the moon is round")


async def test_file_in_a_further_directory_is_written_unasked(live: LiveAgent, tmp_path: Path) -> None:
    further = tmp_path / "further"
    further.mkdir()
    live.script(live.answer(Shell(f"touch {further}/made")), live.answer(Say("Made it.")))
    done = await live.run(approval_mode="prompt", add_dirs=[further], on_approval_request=lambda _: False)
    assert done.result.exit_reason == "completed"
    assert (further / "made").exists()


async def ended_turn(run: RunHandle, number: int) -> None:
    """Wait until this turn has ended."""
    async for event in run.events():
        if event.type == "turn_end" and event.turn_index == number:
            return
    raise AssertionError(f"the run ended before turn {number}")


@CORE
@ALL_AGENTS
async def test_next_turn_uses_another_model(live: LiveAgent) -> None:
    live.script(live.answer(Say("One.")), live.answer(Say("Two."), repeat=True))
    other = live.kit.installation.model
    assert other is not None
    async with live.running(interactive=True) as run:
        await ended_turn(run, 0)
        await run.set_model(other)
        await run.send("and now")
        await ended_turn(run, 1)
        await run.close()
    done = await finish(run)
    assert done.result.text == "Two."
    asked = [str(one.body.get("model") or one.path) for one in live.model.answered(1)]
    name = re.split("[/:]", other)[-1]  # without its provider
    assert any(name in one for one in asked), asked  # some agents ask another model for a title
    assert not any(name in str(one.body.get("model") or one.path) for one in live.model.answered(0))


@CORE
@ALL_AGENTS
async def test_run_enters_plan_mode_and_leaves_it(live: LiveAgent) -> None:
    live.script(
        live.answer(Say("Ready.")), live.answer(Write("note.txt", "new\n")), live.answer(Say(PLAN)),
        live.answer(Write("note.txt", "new\n")), live.answer(Say("Done.")),
    )  # fmt: skip
    async with live.running(interactive=True, approval_mode="prompt") as run:
        await ended_turn(run, 0)
        await run.set_approval_mode("plan")
        await run.send("plan it")
        await ended_turn(run, 1)
        assert not live.file("note.txt").exists()
        await run.set_approval_mode("yolo")
        await run.send("do it")
        await ended_turn(run, 2)
        await run.close()
    done = await finish(run)
    assert live.file("note.txt").exists()
    assert done.result.text == "Done."


@ALL_AGENTS
async def test_mode_prompt_after_yolo_asks(live: LiveAgent) -> None:
    live.script(
        live.answer(Say("Ready.")), live.answer(Shell("touch made", asks=True)), live.answer(Say("As you like."))
    )
    async with live.running(interactive=True, approval_mode="yolo") as run:
        await ended_turn(run, 0)
        await run.set_approval_mode("prompt")
        await run.send("do it")
        async for event in run.events():
            if event.type == "approval_request":
                await run.deny("no")
                break
        await ended_turn(run, 1)
        await run.close()
    done = await finish(run)
    assert not live.file("made").exists()
    assert done.types("approval_request", "approval_denied") == ["approval_request", "approval_denied"]


@HEAVY
@ALL_AGENTS
@pytest.mark.parametrize("name", ["extra_args", "native_options", "thinking_override"])
async def test_option_in_the_agents_words_reaches_the_model(live: LiveAgent, name: OptionName) -> None:
    live.script(live.answer(Shell("ls")), live.answer(Say("Done.")))
    probe = live.kit.probes.get(name)
    has_option = bool(getattr(live.adapter.capabilities, name))
    assert has_option == (probe is not None), "a kit needs a probe for each of these options that its agent has"
    if probe is None:
        unknown: dict[str, Any] = {name: ["--x"] if name == "extra_args" else {"x": "y"}}
        with pytest.raises(CapabilityError, match=name):
            await live.run(**unknown)
        return
    for path, content in probe.files.items():
        live.file(path).write_text(content)
    given: dict[str, Any] = {**probe.options, name: probe.value}
    done = await live.run(**given)
    assert done.result.exit_reason == "completed"
    assert any(probe.is_seen(request.body) for request in live.model.requests)


@HEAVY
@ALL_AGENTS
async def test_fallback_model_answers_when_the_first_is_overloaded(live: LiveAgent) -> None:
    other = live.kit.installation.model or "other"
    name = re.split("[/:]", other)[-1]
    live.script(
        live.answer(Say("From the other model."), model=f"{re.escape(name)}$"), provider_error(live.kit.api, 529)
    )
    if not live.adapter.capabilities.fallback_model:
        with pytest.raises(CapabilityError, match="fallback_model"):
            await live.run(fallback_model=other)
        return
    done = await live.run(fallback_model=other)
    assert done.result.exit_reason == "completed"
    assert done.result.text == "From the other model."
    asked = [str(request.body.get("model")) for request in live.model.requests]
    assert not asked[0].endswith(name)
    assert asked[-1].endswith(name)
