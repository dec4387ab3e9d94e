"""Active skills: reasons, limits, and what survives the end of a run, a resume, a branch, a compaction and a kill."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, reply
from tests.unit.embedded.loop.harness import WAIT, agent
from tests.unit.embedded.skills.worlds import SkillWorld, called, use, write_skill

from agent_loop import (
    Agent,
    Behavior,
    ConfigurationError,
    ContextSettings,
    MemorySessionStore,
    SkillSettings,
    Usage,
    resume,
)
from agent_loop.agent_options import AgentChanges
from agent_loop.events import HookFailed
from agent_loop.hooks.contexts import SkillActivated
from agent_loop.skills.run import ACTIVE

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def skills(tmp_path: Path) -> Path:
    root = tmp_path / "skills"
    for name in ("one", "two", "three"):
        write_skill(root, name, f"Do as {name} says.")
    return root


async def test_model_activates_a_skill_until_the_run_ends(skills: Path) -> None:
    world = SkillWorld(skills)
    await world.results(use("one", "1"), use("two", "2"))
    assert world.changes == [
        ("activate", "one", "model"), ("activate", "two", "model"),
        ("deactivate", "one", "run-end"), ("deactivate", "two", "run-end"),
    ]  # fmt: skip
    assert world.agent.active_skills == ()
    [text] = await world.results(called("skills_read", "3", name="one", path="SKILL.md"))
    assert "is not active" in text  # it does not leak into the next run


async def test_failed_run_deactivates_its_skills(skills: Path) -> None:
    world = SkillWorld(skills, reply("", use("one")), ValueError("broken"))
    await world.run()
    assert world.changes[-1] == ("deactivate", "one", "run-end")


async def test_at_most_max_active_skills_are_active(skills: Path) -> None:
    world = SkillWorld(skills, settings={"max_active": 1})
    _, refused = await world.results(use("one", "1"), use("two", "2"))
    assert refused == "Error: no further skill can be active (one): at most 1 may be"
    await world.agent.activate_skill("two")
    with pytest.raises(ConfigurationError, match="at most 1 may be"):
        await world.agent.activate_skill("three")


async def test_application_activates_a_skill_for_the_next_run_and_its_requests_have_the_instructions(
    skills: Path,
) -> None:
    world = SkillWorld(skills)
    content = await world.agent.activate_skill("one")
    assert content.startswith('<skill_content name="one">\nDo as one says.')
    assert await world.agent.activate_skill("one") == content
    assert world.agent.active_skills == ("one",)
    [text] = await world.results(use("one"))
    assert "active already" in text
    assert all(f"{ACTIVE}\n\n{content}" in request.system for request in world.provider.requests)
    await world.results()
    assert ACTIVE not in world.provider.requests[-1].system
    assert world.changes == [("activate", "one", "explicit"), ("deactivate", "one", "run-end")]


async def test_explicit_deactivation_and_unknown_skills(skills: Path) -> None:
    world = SkillWorld(skills)
    await world.agent.activate_skill("one")
    assert await world.agent.deactivate_skill("one")
    assert not await world.agent.deactivate_skill("one")
    assert world.changes == [("activate", "one", "explicit"), ("deactivate", "one", "explicit")]
    with pytest.raises(ConfigurationError, match="no skill 'four'; skills: one, three, two"):
        await world.agent.activate_skill("four")
    plain = agent(FakeProvider())
    assert (await plain.load_skills(), plain.active_skills, await plain.deactivate_skill("x")) == ((), (), False)
    with pytest.raises(ConfigurationError, match="no skills; pass `skills`"):
        await plain.activate_skill("one")


async def test_reset_deactivates_and_the_hook_fires_with_the_next_call(skills: Path) -> None:
    world = SkillWorld(skills)
    await world.agent.activate_skill("one")
    world.agent.reset()
    assert world.agent.active_skills == ()
    await world.results()
    assert world.changes == [("activate", "one", "explicit"), ("deactivate", "one", "reset")]
    assert ACTIVE not in world.provider.requests[0].system


async def test_failing_hook_outside_of_a_run_is_reported_by_the_next_run(skills: Path) -> None:
    world = SkillWorld(skills)

    async def fail(_: SkillActivated) -> None:
        await anyio.lowlevel.checkpoint()
        raise ValueError("no")

    world.agent.hooks.on("skills:activate", fail)
    await world.agent.activate_skill("one")
    world.provider.answers = [reply("Done.")]
    [failed] = [event for event in await world.run() if isinstance(event, HookFailed)]
    assert (failed.hook, failed.error) == ("skills:activate", "ValueError: no")


async def test_skills_are_searched_once_by_whoever_comes_first(skills: Path) -> None:
    world = SkillWorld(skills)
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.agent.warmup)
            tasks.start_soon(world.agent.load_skills)
            tasks.start_soon(world.agent.activate_skill, "one")
    await world.results()
    assert world.fired.count(("resolve",)) == world.fired.count(("catalog",)) == 1
    assert [skill.name for skill in await world.agent.load_skills()] == ["one", "three", "two"]


# -- histories


async def test_resumed_session_activates_what_its_history_activated(skills: Path) -> None:
    store = MemorySessionStore()
    first = SkillWorld(skills, store=store)
    await first.results(use("two", "1"), use("one", "2"))
    second = SkillWorld(skills, store=store, session=await resume(store, first.agent.session.session_id))
    [text] = await second.results(called("skills_read", "3", name="one", path="SKILL.md"))
    assert "Do as one says." in text
    assert second.changes[:2] == [("activate", "two", "resume"), ("activate", "one", "resume")]
    assert ACTIVE not in second.provider.requests[0].system  # the history has the instructions
    await second.results()
    assert len(second.changes) == 4  # only the first run restores


async def test_resume_keeps_to_max_active_to_existing_skills_and_to_explicit_deactivations(skills: Path) -> None:
    store = MemorySessionStore()
    first = SkillWorld(skills, store=store)
    for each in ("one", "two", "three"):
        first.provider.answers.append(reply("", use(each, each)))
    end = FakeTool("end", lambda: first.agent.deactivate_skill("three"))
    first.agent.tools = (end,)
    first.provider.answers += [reply("", called("end", "e")), reply("Done.")]
    await first.run()
    assert ("deactivate", "three", "explicit") in first.changes
    session_id = first.agent.session.session_id

    async def resumed(**settings: Any) -> list[tuple[str, ...]]:
        world = SkillWorld(skills, store=store, session=await resume(store, session_id), settings=settings)
        await world.results()
        return [each for each in world.changes if each[0] == "activate"]

    assert await resumed() == [("activate", "one", "resume"), ("activate", "two", "resume")]
    assert await resumed(max_active=1) == [("activate", "two", "resume")]
    (skills / "one" / "SKILL.md").unlink()
    assert await resumed() == [("activate", "two", "resume")]


async def test_branch_and_rerun_activate_what_the_kept_messages_activated(skills: Path) -> None:
    world = SkillWorld(skills)
    await world.results(use("one", "1"), use("two", "2"))
    world.fired.clear()
    world.provider.answers += [reply("Branched.")]
    with anyio.fail_after(WAIT):
        await world.agent.continue_run("branch", at=3, prompt="another way")  # after the result of the first call
    assert world.changes == [("activate", "one", "resume"), ("deactivate", "one", "run-end")]
    world.fired.clear()
    world.provider.answers += [reply("Again.")]
    with anyio.fail_after(WAIT):
        await world.agent.continue_run("branch", at=1)
    assert world.changes == []


async def test_run_that_was_killed_resumes_with_its_explicit_skills(skills: Path) -> None:
    store = MemorySessionStore()
    first = SkillWorld(skills, store=store)
    content = await first.agent.activate_skill("one")
    kept: dict[str, Any] = {}
    spy = FakeTool("spy", lambda: kept.update(first.agent.session.state.extra) or "ok")
    first.agent.tools = (spy,)
    first.provider.answers += [reply("", called("spy", "1")), reply("Done.")]
    await first.run()
    assert "skills" not in first.agent.session.state.extra
    session = await resume(store, first.agent.session.session_id)
    session.state.extra.update(kept)  # as the store had it when the process died
    second = SkillWorld(skills, store=store, session=session)
    await second.results()
    assert second.changes[0] == ("activate", "one", "resume")
    assert content in second.provider.requests[0].system


async def test_compaction_keeps_the_instructions_of_active_skills_and_the_prompt_stable(skills: Path) -> None:
    write_skill(skills, "one", "\n".join(f"Rule {number} of the skill." for number in range(200)))
    context = ContextSettings(max_context_tokens=4_000, keep_recent=2, keep_first=1, system_prompt_tokens=100)
    noise = FakeTool("noise", lambda: "\n".join(["noise"] * 400))
    world = SkillWorld(skills, tools=(noise,), behavior=Behavior(context=context, repetition=None))
    unknown = Usage()  # tokens are estimated
    answers = [reply("", called("noise", f"n{number}"), usage=unknown) for number in range(12)]
    world.provider.answers += [reply("", use("one"), usage=unknown), *answers, reply("Done.", usage=unknown)]
    await world.run()
    for request in world.provider.requests[1:]:
        whole = request.system + "".join(message.text for message in request.messages)
        assert all(f"Rule {number} of the skill.\n" in whole for number in (0, 100, 198))
    systems = [request.system for request in world.provider.requests]
    assert ACTIVE not in systems[1]
    assert ACTIVE in systems[-1]
    assert sum(before != after for before, after in pairwise(systems)) == 1


async def test_restored_messages_activate_their_skills(skills: Path) -> None:
    first = SkillWorld(skills)
    await first.results(use("one"))
    second = SkillWorld(skills)
    await second.results()
    second.agent.restore_messages(first.agent.save_messages())
    await second.results()
    assert second.changes[0] == ("activate", "one", "resume")


async def test_twins_have_active_skills_of_their_own(skills: Path) -> None:
    world = SkillWorld(skills)
    await world.agent.activate_skill("one")
    twin: Agent = world.agent.twin(AgentChanges())
    await twin.deactivate_skill("one")
    await twin.activate_skill("two")
    assert (world.agent.active_skills, twin.active_skills) == (("one",), ("two",))


async def test_skills_that_are_no_more_in_the_view_are_returned_again(skills: Path) -> None:
    world = SkillWorld(skills)
    world.agent.hooks.on("context:transform", lambda context: setattr(context, "messages", context.messages[:1]))
    _, again = await world.results(use("one", "1"), use("one", "2"))
    # The result of the call before is missing in the request, so that it is in its system prompt.
    assert "Do as one says." in world.provider.requests[1].system
    assert "Do as one says." in again
    assert world.changes == [("activate", "one", "model"), ("deactivate", "one", "run-end")]


def test_settings_and_a_list_of_directories_are_the_same(skills: Path) -> None:
    for given in ([skills], SkillSettings(inline=[skills])):
        provider = FakeProvider(reply("", use("one")), reply("Done."))
        one = Agent(provider, skills=given)
        assert one.run_sync("go").text == "Done."
        provider.answers = [reply("Done.")]
        assert one.run_sync("again, in another event loop").text == "Done."
