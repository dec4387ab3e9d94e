"""Settings of the command line and of `start`, files, errors and signals."""

import json
import os
import signal
from pathlib import Path

import pytest

from agent_loop.cli.arguments import parse_arguments
from agent_loop.cli.errors import UsageError, is_usage_error
from agent_loop.cli.home import is_trusted_project, read_json, sessions_directory, settings_model
from agent_loop.cli.inputs import read_image, read_schema, read_text
from agent_loop.cli.outcomes import failure_of
from agent_loop.cli.protocol import InvalidCommandError, StartCommand, parse_command
from agent_loop.cli.settings import (
    TURN_LIMITS,
    behavior_of,
    limits_of,
    mcp_servers_of,
    model_of,
    skills_of,
    unsupported_settings,
    untrusted_skills_note,
)
from agent_loop.cli.signals import SignalHandler
from agent_loop.cli.turns import ConversationBudget
from agent_loop.errors import AgentLoopError, MissingKeyError
from agent_loop.events import LoopEnd
from agent_loop.mcp import McpServer
from agent_loop.providers.registry import provider_named
from agent_loop.usage import Usage

# -- the command line


def test_every_settable_field_has_a_flag() -> None:
    read = parse_arguments([
        "--model=scripted:x", "--session=s", "--no-session", "--approval-mode=yolo", "--system-prompt-mode=replace",
        "--max-turns=3", "--max-cost-usd=0.5", "--max-tokens-total=9", "--max-duration=2", "--thinking-effort=low",
        "--thinking-budget-tokens=7", "--temperature=0.1", "--top-p=0.2", "--top-k=3", "--max-output-tokens=4",
        "--agents-doc=NOTES.md", "--skills=a", "--skills=b", "--image=p.png", "--json", "fix", "it",
    ])  # fmt: skip
    assert (read.prompt, read.as_json, read.images) == ("fix it", True, ("p.png",))
    start = StartCommand(**read.flags)
    assert (start.model, start.session_id, start.no_session, start.approval_mode) == ("scripted:x", "s", True, "yolo")
    assert (start.max_turns, start.max_cost_usd, start.max_tokens_total, start.max_duration) == (3, 0.5, 9, 2.0)
    assert (start.skills, start.agents_docs) == (["a", "b"], ["NOTES.md"])


def test_flags_of_modes_sandbox_and_fallback_models() -> None:
    read = parse_arguments([
        "--mode=accept-edits", "--sandbox=auto", "--sandbox-network", "--fallback-model=a:b", "--fallback-model=c:d",
    ])  # fmt: skip
    start = StartCommand(**read.flags)
    assert (start.approval_mode, start.accept_edits) == ("prompt", True)
    assert (start.sandbox, start.sandbox_network, start.fallback_models) == ("auto", True, ["a:b", "c:d"])


def test_flags_that_are_not_given_are_absent() -> None:
    assert parse_arguments([]).flags == {}
    assert parse_arguments([]).prompt is None


@pytest.mark.parametrize(
    "argv",
    [
        ["--nonsense"], ["--max-turns=0"], ["--max-turns=-1"], ["--max-cost-usd=nan"], ["--approval-mode=maybe"],
        ["--max-duration=inf"], ["--control", "prompt"], ["--mod=x"],
    ],
)  # fmt: skip
def test_usage_error_is_one_sentence(argv: list[str]) -> None:
    with pytest.raises(UsageError) as raised:
        parse_arguments(argv)
    assert "\n" not in str(raised.value)


# -- start


def test_settings_of_the_model_become_behaviour() -> None:
    behavior = behavior_of(
        StartCommand(thinking_effort="max", thinking_budget_tokens=9, top_k=3, output_schema={"a": 1})
    )
    assert (behavior.thinking, behavior.thinking_budget, behavior.top_k) == ("max", 9, 3)
    assert behavior.output_schema == {"a": 1}


def test_unsupported_settings_are_reported() -> None:
    assert len(unsupported_settings(StartCommand(protocol=2))) == 1
    assert unsupported_settings(StartCommand()) == []


def test_limits_hold_for_the_whole_conversation() -> None:
    budget = ConversationBudget(limits_of(StartCommand(max_turns=5, max_cost_usd=1.0, max_tokens_total=100)))
    budget.spend(LoopEnd(loop_id="l", status="completed", turns=2, usage=Usage(input_tokens=30, cost_usd=0.75)))
    rest = budget.rest().limits
    assert (rest.max_turns, rest.max_cost_usd, rest.max_total_tokens, rest.max_duration) == (3, 0.25, 70, None)
    budget.spend(LoopEnd(loop_id="l", status="completed", turns=9, usage=Usage(input_tokens=99, cost_usd=9.0)))
    rest = budget.rest().limits
    assert (rest.max_turns, rest.max_cost_usd, rest.max_total_tokens) == (0, 0.0, 0)


def test_turns_are_bounded_where_no_flag_sets_a_limit() -> None:
    budget = ConversationBudget(limits_of(StartCommand()), TURN_LIMITS)
    budget.spend(LoopEnd(loop_id="l", status="completed", turns=9, usage=Usage(input_tokens=99)))
    rest = budget.rest().limits
    assert (rest.max_turns, rest.max_total_tokens, rest.max_duration) == (200, 10_000_000, 7200.0)
    flagged = ConversationBudget(limits_of(StartCommand(max_turns=3, max_duration=9.0)), TURN_LIMITS).rest().limits
    assert (flagged.max_turns, flagged.max_total_tokens, flagged.max_duration) == (3, 10_000_000, 9.0)


# -- places and files


def test_environment_determines_the_sessions_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert sessions_directory({"AMUX_AGENT_HOME": "/a"}) == Path("/a/sessions")
    assert sessions_directory({"XDG_DATA_HOME": "/data"}) == Path("/data/agent-mux/native/sessions")
    assert sessions_directory({"XDG_DATA_HOME": "data"}) == Path("/home/me/.local/share/agent-mux/native/sessions")


def test_skills_are_looked_for_in_the_home_and_in_a_trusted_project(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    environ = {"AMUX_AGENT_HOME": str(home)}
    empty = skills_of(StartCommand(), environ, project)
    assert (empty.inline, empty.project, empty.user, untrusted_skills_note(empty, project)) == ([], (), [], [])
    places = [project / ".agents" / "skills", project / ".claude" / "skills"]
    for place in (home / "skills", *places):
        place.mkdir(parents=True)
    for name in ("a", "b"):
        (project / name).mkdir()
    untrusted = skills_of(StartCommand(skills=["a", "b"]), environ, project)
    assert (untrusted.inline, untrusted.project) == ([project / "b", project / "a"], ())
    assert (untrusted.user, untrusted.trust_project) == ([home / "skills"], False)
    [note] = untrusted_skills_note(untrusted, project)
    assert note.startswith("the skills in .agents/skills and .claude/skills are not used, because the project is not")
    trusted = skills_of(StartCommand(trust_project_skills=True), environ, project)
    assert (trusted.project, trusted.trust_project, untrusted_skills_note(trusted, project)) == (places, True, [])


def test_settings_file_names_trusted_projects_and_directories_above_them(tmp_path: Path) -> None:
    environ, project = {"AMUX_AGENT_HOME": str(tmp_path)}, tmp_path / "work" / "project"
    (project / ".agents" / "skills").mkdir(parents=True)
    file = tmp_path / "settings.json"
    (tmp_path / "circle").symlink_to("circle")
    for named, is_trusted in (
        (project, True),
        (tmp_path / "work", True),
        (tmp_path / "wor", False),
        (project / "x", False),
        (tmp_path / "circle", False),
        ("~user-that-does-not-exist/work", False),
    ):
        file.write_text(json.dumps({"trustedProjects": [str(named)]}))
        assert is_trusted_project(environ, project) is is_trusted
        assert skills_of(StartCommand(), environ, project).trust_project is is_trusted
    for wrong in ("x", [3], [""], ["a\0b"]):
        file.write_text(json.dumps({"trustedProjects": wrong}))
        with pytest.raises(UsageError, match="trustedProjects that are no directories"):
            is_trusted_project(environ, project)


def test_directory_of_skills_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="b is not a directory; name an existing directory of skills"):
        skills_of(StartCommand(skills=[".", "b"]), {}, tmp_path)


def test_flags_of_skills_are_settings_of_the_agent(tmp_path: Path) -> None:
    read = parse_arguments(["--trust-project-skills", "--skill-shell", "--max-active-skills=2"])
    settings = skills_of(StartCommand(**read.flags), {"AMUX_AGENT_HOME": str(tmp_path)}, tmp_path)
    assert (settings.shell_interpolation, settings.max_active) == (True, 2)
    with pytest.raises(InvalidCommandError, match="maxActiveSkills"):
        parse_command(b'{"type":"start","maxActiveSkills":0}')


def test_model_of_the_settings_file_is_the_default(tmp_path: Path) -> None:
    environ, file = {"AMUX_AGENT_HOME": str(tmp_path)}, tmp_path / "settings.json"
    assert settings_model(environ) is None
    file.write_text('{"model": "openai:gpt-x", "more": 1}')
    assert settings_model(environ) == "openai:gpt-x"
    assert model_of(StartCommand(), environ) == "openai:gpt-x"
    assert model_of(StartCommand(), {**environ, "AMUX_AGENT_MODEL": "google:g"}) == "google:g"
    for wrong in ('{"model": 3}', "{", '"x'):
        file.write_text(wrong)
        with pytest.raises(UsageError, match=r"settings\.json"):
            settings_model(environ)


@pytest.mark.parametrize(
    ("usual", "asked", "model"),
    [
        ("openai:gpt-x", "gpt-y", "openai:gpt-y"),
        ("openai:gpt-x", "google:g", "google:g"),
        ("openai:gpt-x", "scripted", "scripted"),
        ("scripted:a.json", "gpt-y", "gpt-y"),
        ("", "gpt-y", "gpt-y"),
    ],
)
def test_model_without_a_provider_gets_the_default_provider(usual: str, asked: str, model: str) -> None:
    assert model_of(StartCommand(model=asked), {"AMUX_AGENT_MODEL": usual}) == model


def test_model_without_a_provider_gets_the_provider_whose_key_is_set(tmp_path: Path) -> None:
    environ = {"AMUX_AGENT_HOME": str(tmp_path), "OPENAI_API_KEY": "key"}
    assert model_of(StartCommand(model="gpt-y"), environ) == "openai:gpt-y"


def test_key_in_the_environment_selects_the_model_of_a_run_that_names_none(tmp_path: Path) -> None:
    environ = {"AMUX_AGENT_HOME": str(tmp_path), "GEMINI_API_KEY": "key"}
    assert model_of(StartCommand(), environ).startswith("google:")
    assert model_of(StartCommand(model="scripted:a.toml"), environ) == "scripted:a.toml"
    assert model_of(StartCommand(), {**environ, "AMUX_AGENT_MODEL": "openai:gpt-x"}) == "openai:gpt-x"


@pytest.mark.parametrize("named", [None, "anthropic:claude-x"])
def test_missing_key_is_an_auth_error_with_guidance(named: str | None, tmp_path: Path) -> None:
    environ = {"AMUX_AGENT_HOME": str(tmp_path)}
    with pytest.raises(MissingKeyError, match="set ANTHROPIC_API_KEY") as raised:
        provider_named(model_of(StartCommand(model=named), environ), environ=environ)
    failure = failure_of(raised.value)
    assert failure.code == "AUTH_ERROR"
    assert failure.guidance
    assert not is_usage_error(raised.value)


def test_unreadable_files_are_rejected_with_their_name(tmp_path: Path) -> None:
    picture, text, schema, odd = (tmp_path / name for name in ("a", "b.txt", "c.json", "d"))
    picture.write_bytes(b"\x89PNG\r\n\x1a\n...")
    text.write_text("be brief")
    schema.write_text('{"type": "object"}')
    odd.write_bytes(b"\xff\xfe")
    assert read_image(str(picture)).mime_type == "image/png"
    assert read_text(str(text)) == "be brief"
    assert read_schema(str(schema)) == {"type": "object"}
    for read, path in ((read_image, text), (read_text, odd), (read_schema, text), (read_text, tmp_path)):
        with pytest.raises(UsageError, match=str(path)):
            read(str(path))


def test_image_is_recognized_by_its_content_and_not_by_its_name(tmp_path: Path) -> None:
    for name, content in (("text.png", b"no picture"), ("empty.jpg", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError, match="is not a supported image; use a PNG, JPEG, GIF or WebP file"):
            read_image(str(tmp_path / name))


def test_settings_in_a_pipe_are_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "settings.json")
    with pytest.raises(UsageError, match="cannot be read: it is a pipe"):
        read_json(tmp_path / "settings.json")


# -- signals


class Target:
    """Records the calls of the signal handler."""

    def __init__(self, *, running: bool) -> None:
        self.calls: list[str] = []
        self._running = running

    def interrupt(self) -> bool:
        self.calls.append("interrupt")
        return self._running

    def close(self) -> None:
        self.calls.append("close")

    def cancel(self) -> None:
        self.calls.append("cancel")


def test_sigint_interrupts_or_closes_and_a_second_one_cancels() -> None:
    times = iter([10.0, 10.0, 12.0, 12.0, 12.5])
    target, signals = Target(running=True), SignalHandler(lambda: next(times))
    for _ in range(3):
        signals.handle(signal.SIGINT, target)
    assert target.calls == ["interrupt", "interrupt", "cancel"]
    idle = Target(running=False)
    SignalHandler(lambda: 0.0).handle(signal.SIGINT, idle)
    assert idle.calls == ["interrupt", "close"]


def test_sigterm_cancels_at_once() -> None:
    target = Target(running=True)
    SignalHandler(lambda: 0.0).handle(signal.SIGTERM, target)
    assert target.calls == ["cancel"]


def test_usage_error_is_not_an_agent_loop_error() -> None:
    assert not issubclass(UsageError, AgentLoopError)


def test_mcp_servers_of_the_start_line_become_servers_of_the_agent(tmp_path: Path) -> None:
    line = (
        b'{"type": "start", "mcpServers": [{"name": "a", "command": "x", "args": ["1"], "env": {"K": "v"}},'
        b' {"name": "b", "transport": "sse", "url": "http://h", "headers": {"A": "b"}, "honorReadOnly": true}]}'
    )
    start = parse_command(line)
    assert isinstance(start, StartCommand)
    assert mcp_servers_of(start, tmp_path) == [
        McpServer(name="a", command="x", args=["1"], env={"K": "v"}, cwd=str(tmp_path)),
        McpServer(
            name="b",
            transport="sse",
            args=[],
            url="http://h",
            headers={"A": "b"},
            honor_read_only=True,
            cwd=str(tmp_path),
        ),
    ]
