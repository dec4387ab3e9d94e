"""`amux acp`: plan mode, commands, and choices that survive loading a session, with the official client library."""

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.schema import AvailableCommandsUpdate, CurrentModeUpdate
from tests.process.acp_editor import Editor, start_editor
from tests.process.conversations import CHAT_AGENT
from tests.process.embedded_agent import Sandbox
from tests.process.installed_command import REPOSITORY, Installed
from tests.process.test_amux_agent_agents import PLAN, WRITE, call

pytestmark = pytest.mark.anyio
Start = Callable[..., AbstractAsyncContextManager[Editor]]
STORE = REPOSITORY / "tests" / "stores" / "claude" / "2.1.330" / "home"
FAKE = {"AMUX_CLAUDE_EXECUTABLE": shutil.which("false") or ""}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.fixture
def start(installed: Installed) -> Start:
    @asynccontextmanager
    async def starting(agent: str, *arguments: object, **extra: str) -> AsyncIterator[Editor]:
        environment = installed.environment(CHAT_AGENT, extra)
        async with start_editor("--agent", agent, *arguments, environment=environment, cwd=installed.home) as one:
            yield one

    return starting


def modes_of(answer: Any) -> tuple[str, list[str]]:
    return answer.modes.current_mode_id, [mode.id for mode in answer.modes.available_modes]


def commands_of(editor: Editor, session: str) -> list[tuple[str, str]]:
    updates = [update for update in editor.updates_of(session) if isinstance(update, AvailableCommandsUpdate)]
    return [(one.name, one.description) for update in updates for one in update.available_commands]


async def test_plan_mode_is_offered_by_agents_that_have_one(start: Start, tmp_path: Path) -> None:
    async with start("claude", **FAKE) as editor:
        answer = await editor.agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        assert modes_of(answer) == ("prompt", ["prompt", "yolo", "deny", "plan"])
        await editor.agent.set_session_mode(session_id=answer.session_id, mode_id="plan")
        chosen = await editor.agent.set_config_option(config_id="mode", session_id=answer.session_id, value="plan")
        assert chosen.config_options[0].current_value == "plan"
        await editor.wait_until(
            lambda seen: any(isinstance(one, CurrentModeUpdate) for one in seen.updates_of(answer.session_id))
        )


@pytest.mark.slow
async def test_plan_mode_is_refused_by_agents_without_one(start: Start, tmp_path: Path) -> None:
    async with start("scripted") as editor:
        answer = await editor.agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        assert "plan" not in modes_of(answer)[1]
        with pytest.raises(RequestError, match="prompt, yolo, deny"):
            await editor.agent.set_session_mode(session_id=answer.session_id, mode_id="plan")


@pytest.mark.slow
async def test_plan_of_the_command_line_is_the_mode_of_new_sessions(start: Start, tmp_path: Path) -> None:
    async with start("claude", "--plan", **FAKE) as editor:
        answer = await editor.agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        assert modes_of(answer)[0] == "plan"


async def test_plan_mode_changes_nothing_until_another_mode_is_chosen(start: Start, sandbox: Sandbox) -> None:
    model = sandbox.script(WRITE, {"text": "That is the plan."}, WRITE, {"text": "That was it."})
    async with start("native", "--model", model, AMUX_AGENT_HOME=str(sandbox.home)) as editor:
        session = await editor.begin(sandbox.work)
        await editor.agent.set_session_mode(session_id=session, mode_id="plan")
        assert await editor.ask(session, "go") == "end_turn"
        assert editor.asked == []
        assert not (sandbox.work / "made").exists()
        await editor.agent.set_session_mode(session_id=session, mode_id="prompt")
        assert await editor.ask(session, "do it") == "end_turn"
        assert len(editor.asked) == 1
        assert (sandbox.work / "made").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("chosen", "is_made"), [("allow", True), ("reject", False)])
async def test_plan_is_accepted_or_rejected_in_the_editor(
    start: Start, sandbox: Sandbox, chosen: str, *, is_made: bool
) -> None:
    model = sandbox.script(call("present_plan", plan=PLAN), WRITE, {"text": "That was it."})
    planner = ("--native-option", "agent=plan")
    async with start("native", "--model", model, *planner, AMUX_AGENT_HOME=str(sandbox.home)) as editor:
        editor.decide = lambda _: chosen
        session = await editor.begin(sandbox.work)
        await editor.agent.set_session_mode(session_id=session, mode_id="plan")
        assert await editor.ask(session, "go") == "end_turn"
        assert PLAN in str(editor.asked[0][0])
        assert (sandbox.work / "made").exists() == is_made


async def test_choices_survive_loading_the_session_in_another_process(
    start: Start, installed: Installed, tmp_path: Path
) -> None:
    shutil.copytree(STORE, installed.home, dirs_exist_ok=True)
    place = {"cwd": str(tmp_path), "mcp_servers": []}
    async with start("claude", **FAKE) as editor:
        (one, *_) = (await editor.agent.list_sessions()).sessions
        loaded = await editor.agent.load_session(session_id=one.session_id, **place)
        assert modes_of(loaded)[0] == "prompt"
        await editor.agent.set_session_mode(session_id=one.session_id, mode_id="plan")
        await editor.agent.set_config_option(config_id="model", session_id=one.session_id, value="claude-haiku-5-5")
        again = await editor.agent.load_session(session_id=one.session_id, **place)
        assert modes_of(again)[0] == "plan"
    async with start("claude", **FAKE) as editor:
        loaded = await editor.agent.load_session(session_id=one.session_id, **place)
        assert modes_of(loaded)[0] == "plan"
        assert {option.id: option.current_value for option in loaded.config_options}["model"] == "claude-haiku-5-5"
        forked = await editor.agent.fork_session(session_id=one.session_id, **place)
        assert modes_of(forked)[0] == "plan"
        resumed = await editor.agent.resume_session(session_id=one.session_id, **place)
        assert modes_of(resumed)[0] == "plan"
        new = await editor.agent.new_session(**place)
        assert modes_of(new)[0] == "prompt"
    stored = installed.home / "config" / "editor-sessions.json"
    assert stored.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
async def test_damaged_file_of_choices_does_not_prevent_a_session(
    start: Start, installed: Installed, tmp_path: Path
) -> None:
    (installed.home / "config").mkdir()
    (installed.home / "config" / "editor-sessions.json").write_text("{")
    async with start("claude", **FAKE) as editor:
        answer = await editor.agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        await editor.agent.set_session_mode(session_id=answer.session_id, mode_id="plan")
    assert (installed.home / "config" / "editor-sessions.json").read_text() == "{"


def add_skill(folder: Path, name: str, description: str | None = "does it") -> None:
    (folder / name).mkdir(parents=True)
    header = f"---\nname: {name}\n" + (f"description: {description}\n" if description else "") + "---\n"
    (folder / name / "SKILL.md").write_text(header + "Do it.\n")


async def test_skills_are_listed_as_commands_after_the_session_is_known(
    start: Start, installed: Installed, tmp_path: Path
) -> None:
    add_skill(installed.home / ".claude" / "skills", "release", "writes the release notes")
    add_skill(tmp_path / ".claude" / "skills", "deploy", "deploys it")
    add_skill(tmp_path / ".claude" / "skills", "broken", None)
    async with start("claude", **FAKE) as editor:
        session = await editor.begin(tmp_path)
        await editor.wait_until(lambda seen: commands_of(seen, session))
        assert commands_of(editor, session) == [("deploy", "deploys it"), ("release", "writes the release notes")]
        kinds = ["response" if "result" in message else message["method"] for message in editor.wire]
        assert kinds == ["response", "response", "session/update"]


@pytest.mark.slow
async def test_loaded_session_lists_its_commands(start: Start, installed: Installed, tmp_path: Path) -> None:
    shutil.copytree(STORE, installed.home, dirs_exist_ok=True)
    add_skill(installed.home / ".claude" / "skills", "release")
    async with start("claude", **FAKE) as editor:
        (one, *_) = (await editor.agent.list_sessions()).sessions
        await editor.agent.load_session(session_id=one.session_id, cwd=str(tmp_path), mcp_servers=[])
        assert ("release", "does it") in commands_of(editor, one.session_id)


@pytest.mark.slow
async def test_command_reaches_the_agent_with_the_file_of_the_skill(start: Start, sandbox: Sandbox) -> None:
    skills = sandbox.home / "skills"
    add_skill(skills, "release")
    model = sandbox.script({"text": "read it"})
    async with start("native", "--model", model, AMUX_AGENT_HOME=str(sandbox.home)) as editor:
        session = await editor.begin(sandbox.work)
        await editor.wait_until(lambda seen: commands_of(seen, session))
        assert await editor.ask(session, "/release 1.2\nand say so") == "end_turn"
    (journal,) = sandbox.root.glob(f"home/config/runs/{session}.journal")
    text = journal.read_text("utf-8", errors="replace")
    assert str(skills / "release" / "SKILL.md") in text
    assert "1.2" in text
