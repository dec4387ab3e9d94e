"""Words and flags to the options of a run."""

import io
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from agent_mux.cli import inputs
from agent_mux.cli.interaction_handlers import DenyingHandler, InteractionHandler, TerminalHandler
from agent_mux.cli.interactive.jsonl import JsonlHandler
from agent_mux.cli.interactive.repl import ReplHandler
from agent_mux.cli.output import OutputWriter
from agent_mux.cli.request import StandardStreams, handler_for, inspect_streams, options_from, view_for, wants_json
from agent_mux.cli.run_flags import RunFlags
from agent_mux.cli.terminal import Palette
from agent_mux.cli.views import HumanView, JsonView, QuietView, ResultView
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.options import Attachment, McpServer, RetryPolicy, RunOptions
from agent_mux.settings.layers import options_from_fields

IN_A_PIPELINE = StandardStreams(asks=False, in_pipeline=True)
AT_A_TERMINAL = StandardStreams(asks=True, in_pipeline=False)


def options(*words: str, **flags: Any) -> RunOptions:
    return options_from_fields(options_from(list(words), RunFlags(**flags)))


def test_without_flags_no_options_are_set() -> None:
    assert options("claude", "hi") == RunOptions(agent="claude", prompt="hi")


def test_every_flag_has_its_place_in_the_options(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object"}')
    given = options(
        "the prompt",
        agent="claude", command="agent '--as it is'", model="opus", attach=["a.png", "https://x/y.png"],
        cwd=tmp_path / "." / "sub" / "..", env=["A=1", "B=x=y", "C="], system="be brief", system_mode="replace",
        output_schema=schema, thinking_effort="high", thinking_budget=2048, temperature=0.5, top_p=0.9, top_k=5,
        max_tokens=100, stream=False, session="S", max_model_calls=3, timeout=60.0,
        inactivity_timeout=5.0, grace_period=1.0, max_cost=0.5, max_tokens_total=1000, retry=5, retry_delay=0.5,
        wait_for_quota="5h", fallback=["codex:gpt-5.5", "gemini"],
        interactive=True,
        yolo=True, tag=["t", "u"],
        mcp_server=["files=npx -y 'the server'"], run_id="0" * 26, project_id="p", include_subagent_events=True,
        journal=tmp_path / "j", debug=True, agents_doc=tmp_path / "GUIDE.md", skill=["skills/dig"],
        isolation="worktree", allowed_tools=["Read"], disallowed_tools=["Bash"], add_dir=[tmp_path / "x" / ".."],
        fallback_model="haiku", thinking_override=["effort=xhigh", "budget_tokens=2000"], extra_arg=["--flag"],
        native_option=["a.b=[1]", "c=text=more"],
    )  # fmt: skip
    assert given == RunOptions(
        agent="claude", prompt="the prompt", command=("agent", "--as it is"), model="opus",
        attachments=(Attachment(file_path=str(Path.cwd() / "a.png")), Attachment(url="https://x/y.png")),
        cwd=tmp_path, env={"A": "1", "B": "x=y", "C": ""}, system_prompt="be brief", system_prompt_mode="replace",
        output_schema={"type": "object"}, thinking_effort="high", thinking_budget_tokens=2048, temperature=0.5,
        top_p=0.9, top_k=5, max_tokens=100, stream=False, session_id="S", max_model_calls=3, timeout=60.0,
        inactivity_timeout=5.0, grace_period=1.0, max_cost_usd=0.5, max_tokens_total=1000, interactive=True,
        retry_policy=RetryPolicy(max_attempts=5, base_delay=0.5),
        wait_for_quota=18_000.0, fallback=["codex:gpt-5.5", "gemini"], approval_mode="yolo", tags=("t", "u"),
        mcp_servers=(McpServer("files", command="npx", args=("-y", "the server")),), run_id="0" * 26, project_id="p",
        include_subagent_events=True, journal=tmp_path / "j", debug=True, agents_doc=tmp_path / "GUIDE.md",
        skills=[str(Path.cwd() / "skills" / "dig")], isolation="worktree",
        allowed_tools=("Read",), disallowed_tools=("Bash",), add_dirs=(str(tmp_path),), fallback_model="haiku",
        thinking_override={"effort": "xhigh", "budget_tokens": 2000}, extra_args=("--flag",),
        native_options={"a.b": [1], "c": "text=more"},
    )  # fmt: skip


def test_every_option_has_a_flag_or_a_reason() -> None:
    elsewhere = {"on_approval_request", "on_input_required", "collect_events", "event_buffer_size", "tools"}
    unreachable = {"max_output_tokens", "inherit_env"}  # max_tokens and env -i say the same
    named = {name for name in Path(options_from.__code__.co_filename).read_text().split('"') if name.isidentifier()}
    missing = {spec.name for spec in fields(RunOptions)} - named - elsewhere - unreachable - {"agent", "prompt"}
    assert missing == set()


def test_the_other_flags() -> None:
    assert options("claude", "hi", deny=True, no_journal=True, fork="S", no_session=False) == RunOptions(
        agent="claude", prompt="hi", approval_mode="deny", journal=False, fork_session_id="S"
    )
    assert options("claude", "hi", no_session=True).no_session is True


@pytest.mark.parametrize(
    ("words", "flags", "agent", "prompt"),
    [
        (["claude", "hi"], {}, "claude", "hi"),
        (["hi"], {"agent": "claude"}, "claude", "hi"),
        (["claude"], {"prompt": ["hi", "there"]}, "claude", ["hi", "there"]),
        ([], {"agent": "claude", "prompt": ["hi"]}, "claude", ["hi"]),
        (["claude"], {}, "claude", "from a pipe"),
        (["claude", "-"], {}, "claude", "from a pipe"),
        (["claude"], {"interactive": True}, "claude", ""),
        (["claude", "hi"], {"interactive": True}, "claude", "hi"),
        ([], {"agent": "claude"}, "claude", "from a pipe"),
    ],
)
def test_the_prompt_comes_from_words_flags_or_standard_input(
    monkeypatch: pytest.MonkeyPatch, words: list[str], flags: dict[str, Any], agent: str, prompt: str | list[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe")))
    given = options(*words, **flags)
    assert (given.agent, given.prompt) == (agent, prompt)


@pytest.mark.parametrize(
    ("words", "flags", "agent", "prompt"),
    [
        (["fix it"], {}, None, "fix it"),
        ([], {"prompt": ["fix it"]}, None, ["fix it"]),
        ([], {}, None, "from a pipe"),
        (["-"], {}, None, "from a pipe"),
        (["fix"], {}, None, "fix"),
        ([], {"interactive": True}, None, ""),
        (["claude"], {}, "claude", "from a pipe"),
        (["claude-code"], {}, "claude-code", "from a pipe"),
        (["cluade"], {}, "cluade", "from a pipe"),  # AGENT_NOT_FOUND says what was meant
        (["codex", "hi"], {}, "codex", "hi"),
    ],
)
def test_a_default_agent_can_be_left_out(
    monkeypatch: pytest.MonkeyPatch, words: list[str], flags: dict[str, Any], agent: str, prompt: str | list[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe")))
    said = options_from(words, RunFlags(**flags), lambda: "claude")
    assert (said.get("agent"), said["prompt"]) == (agent, prompt)


def test_explicit_default_values_are_set() -> None:
    said = options_from(["claude", "hi"], RunFlags(timeout=0.0, retry=3, no_profile=True, grace_period=5.0))
    assert said == {
        "agent": "claude", "prompt": "hi", "timeout": 0.0, "grace_period": 5.0, "retry_policy": {"max_attempts": 3},
        "profile": "", "interactive": False,
    }  # fmt: skip
    assert options_from(["claude", "hi"], RunFlags(profile="fast"))["profile"] == "fast"


def test_a_conversation_does_not_read_the_prompt_from_standard_input() -> None:
    with pytest.raises(AgentMuxError, match="omit the -"):
        options("claude", "-", interactive=True)


@pytest.mark.parametrize(
    ("flags", "policy"),
    [
        ({}, None),
        ({"retry": 1}, RetryPolicy(max_attempts=1)),
        ({"retry": 2, "retry_delay": 0.0}, RetryPolicy(max_attempts=2, base_delay=0)),
        ({"retry": 2, "retry_delay": 60.0}, RetryPolicy(max_attempts=2, base_delay=60, max_delay=60)),
    ],
)
def test_retries(flags: dict[str, Any], policy: RetryPolicy | None) -> None:
    assert options("claude", "hi", **flags).retry_policy == policy


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"retry": 0}, "--retry expects the total number of attempts"),
        ({"retry_delay": 1.0}, "--retry-delay requires --retry"),
        ({"retry": 2, "retry_delay": -1.0}, "--retry-delay expects seconds"),
        ({"retry": 2, "retry_delay": float("nan")}, "--retry-delay expects seconds"),
        ({"retry": 2, "retry_delay": float("inf")}, "--retry-delay expects seconds"),
    ],
)
def test_invalid_retries_are_rejected(flags: dict[str, Any], told: str) -> None:
    with pytest.raises(AgentMuxError, match=told):
        options("claude", "hi", **flags)


def test_the_handler_follows_the_flags_and_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    def company(around: StandardStreams, *, as_json: bool = False, **flags: Any) -> type[InteractionHandler]:
        made = handler_for(RunFlags(**flags), around, as_json=as_json)
        return type(made(OutputWriter(), Palette(enabled=False)))

    monkeypatch.setenv("TERM", "xterm")
    assert company(AT_A_TERMINAL) is TerminalHandler
    assert company(AT_A_TERMINAL, non_interactive=True) is DenyingHandler
    assert company(IN_A_PIPELINE) is DenyingHandler
    assert company(AT_A_TERMINAL, interactive=True) is ReplHandler
    assert company(IN_A_PIPELINE, interactive=True, as_json=True) is JsonlHandler
    for wrong in ({"quiet": True}, {"around": IN_A_PIPELINE}):
        with pytest.raises(AgentMuxError, match="--interactive "):
            company(**{"around": AT_A_TERMINAL, "interactive": True, **wrong})
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(AgentMuxError, match="--interactive requires a terminal with cursor movement"):
        company(AT_A_TERMINAL, interactive=True)


def test_a_given_prompt_does_not_read_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert options("claude", "hi").prompt == "hi"


def test_a_missing_prompt_on_a_terminal_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(AgentMuxError, match="no prompt: pass PROMPT"):
        options("claude")


@pytest.mark.parametrize(
    ("flags", "around", "expected"),
    [
        ({}, AT_A_TERMINAL, False),
        ({}, IN_A_PIPELINE, True),
        ({"quiet": True}, IN_A_PIPELINE, False),
        ({"json": False}, IN_A_PIPELINE, False),
        ({"json": True}, AT_A_TERMINAL, True),
        ({"output_format": "text"}, IN_A_PIPELINE, False),
        ({"output_format": "json"}, AT_A_TERMINAL, True),
        ({"output_format": "jsonl"}, AT_A_TERMINAL, True),
    ],
)
def test_two_pipes_imply_json_without_another_format(
    flags: dict[str, Any], around: StandardStreams, expected: bool
) -> None:
    assert wants_json(RunFlags(**flags), around) is expected


def test_the_view_follows_the_flags() -> None:
    assert isinstance(view_for(RunFlags(), as_json=False), HumanView)
    assert isinstance(view_for(RunFlags(quiet=True), as_json=False), QuietView)
    assert isinstance(view_for(RunFlags(compact=True), as_json=True), JsonView)
    assert isinstance(view_for(RunFlags(output_format="jsonl"), as_json=True), JsonView)
    assert isinstance(view_for(RunFlags(output_format="json"), as_json=True), ResultView)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"output_format": "xml"}, "expects one of text, json, jsonl; got 'xml'"),
        ({"output_format": "text", "json": True}, "cannot be combined with --json"),
        ({"output_format": "json", "quiet": True}, "cannot be combined with --quiet"),
        ({"output_format": "json", "interactive": True}, "a conversation has several; use jsonl"),
    ],
)
def test_invalid_formats_are_rejected(flags: dict[str, Any], told: str) -> None:
    with pytest.raises(AgentMuxError, match=told):
        wants_json(RunFlags(**flags), AT_A_TERMINAL)


def test_streams_without_descriptors_are_not_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert inspect_streams() == StandardStreams(asks=False, in_pipeline=False)


@pytest.mark.parametrize(
    ("spec", "server"),
    [
        ("a=node server.js --port 1", McpServer("a", command="node", args=("server.js", "--port", "1"))),
        ("a=https://x/mcp?k=v", McpServer("a", "streamable-http", url="https://x/mcp?k=v")),
        ("a=sse+http://x/sse", McpServer("a", "sse", url="http://x/sse")),
        ("a=sse+command", McpServer("a", command="sse+command")),
    ],
)
def test_mcp_servers_from_a_flag(spec: str, server: McpServer) -> None:
    assert inputs.mcp_servers([spec]) == (server,)


def test_mcp_servers_from_a_file(tmp_path: Path) -> None:
    listed = {
        "a": {"command": "x", "args": ["y"], "env": {"K": "V"}},
        "b": {"type": "sse", "url": "http://b", "headers": {"H": "1"}},
        "c": {"type": "http", "url": "http://c"},
        "d": {"url": "http://d"},
    }
    path = tmp_path / "servers.json"
    expected = (
        McpServer("a", command="x", args=("y",), env={"K": "V"}),
        McpServer("b", "sse", url="http://b", headers={"H": "1"}),
        McpServer("c", "streamable-http", url="http://c"),
        McpServer("d", "streamable-http", url="http://d"),
    )
    for content in (listed, {"mcpServers": listed}):
        path.write_text(json.dumps(content))
        assert inputs.mcp_servers([f"@{path}"]) == expected


@pytest.mark.parametrize("kind", [["sse"], {}, 5])
def test_mcp_server_with_a_type_that_is_no_text_is_refused(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"a": {"url": "http://a", "type": kind}}))
    with pytest.raises(AgentMuxError, match="command, url and type are text"):
        inputs.mcp_servers([f"@{path}"])


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("90m", 5400.0), ("7d", 604_800.0)])
def test_longest_wait_is_a_duration(text: str, seconds: float) -> None:
    assert options("claude", "hi", wait_for_quota=text).wait_for_quota == seconds


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], "use `amux run AGENT PROMPT`"),
        (["fix it"], "('fix it' is not an agent): use `amux run AGENT 'fix it'`"),
        (["fix", "the", "bug"], "('fix' is not an agent): use `amux run AGENT 'fix the bug'`"),
    ],
)
def test_a_missing_agent_is_reported_with_the_ways_to_name_one(words: list[str], shown: str) -> None:
    with pytest.raises(AgentMuxError) as raised:
        options_from(words, RunFlags())
    assert shown in raised.value.message
    assert "AGENT_MUX_DEFAULT_AGENT" in raised.value.message


def test_an_empty_prompt_on_standard_input_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" \n")))
    with pytest.raises(AgentMuxError, match="prompt is empty"):
        options("claude")


def test_several_words_without_an_agent_are_not_taken_for_one() -> None:
    with pytest.raises(AgentMuxError, match="expected one prompt, got 3 words; quote it"):
        options_from(["fix", "the", "bug"], RunFlags(), lambda: "claude")


def test_agent_that_only_a_service_knows_can_be_named() -> None:
    given = options_from(["theirs", "hi"], RunFlags(), lambda: "default agent of the service")
    assert (given["agent"], given["prompt"]) == ("theirs", "hi")


def test_single_unknown_word_is_reported_as_an_agent() -> None:
    with pytest.raises(AgentMuxError, match="no agent is named 'fix'") as raised:
        options_from(["fix"], RunFlags())
    assert raised.value.code == "AGENT_NOT_FOUND"


def test_live_view_is_not_imported_before_the_agent_runs() -> None:
    program = (
        "import sys; from agent_mux.cli.request import live_view; from agent_mux.cli.output import Screen\n"
        "import agent_mux.cli.run_driver\n"
        "live_view(Screen(shared=True))\n"
        "print([name for name in sys.modules if name.split('.')[:3] == ['agent_mux', 'cli', 'live']"
        " or name == 'agent_mux.views' or name.split('.')[0] in {'rich', 'markdown_it', 'pygments'}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
