"""The embedded agent with a skill of a trusted project: the model activates it, reads a file and runs its script."""

import pytest
from tests.e2e.harness import LiveAgent
from tests.e2e.native_scenes import calls, raw, with_skill
from tests.e2e.ways import HEAVY

from agent_mux import Approve
from agent_mux_testing.live import Say
from agent_mux_testing.model_server.script import ToolUse

pytestmark = pytest.mark.anyio


@pytest.fixture
def native(native: LiveAgent) -> LiveAgent:
    with_skill(native)
    return native


def use_singing(live: LiveAgent) -> None:
    read = {"name": "singing", "path": "notes.md"}
    run = {"name": "singing", "path": "sing.sh", "args": ["la la"]}
    live.script(
        raw(ToolUse("skills_use", {"name": "singing"})), raw(ToolUse("skills_read", read)),
        raw(ToolUse("skills_run_script", run)), live.answer(Say("Sung.")),
    )  # fmt: skip


async def test_skill_is_activated_read_and_its_script_runs_after_an_approval(native: LiveAgent) -> None:
    use_singing(native)
    done = await native.run(
        approval_mode="prompt", on_approval_request=lambda _: Approve(), native_options={"trustProjectSkills": True}
    )
    assert done.result.text == "Sung."
    assert done.one("skill_loaded").skill_name == done.one("skill_invoked").skill_name == "singing"
    script = native.file(".claude/skills/singing/sing.sh")
    assert done.one("approval_request").command == done.one("shell_start").command == f"{script} 'la la'"
    assert done.one("shell_exit").exit_code == 0
    for text in ("Sing with sing.sh.", "Do re mi.", "la la, sings the quokka"):
        assert native.model.received(text)


@HEAVY
async def test_skills_of_a_project_that_is_not_trusted_do_not_reach_the_model(native: LiveAgent) -> None:
    native.script(*calls(native, last="Silent."))
    done = await native.run()
    assert done.types("skill_loaded") == []
    assert not native.model.received("available_skills")
    assert any("the project is not trusted" in str(event) for event in done.events)
