"""Agent files: the preset of each key, errors with file and line, discovery, and what files of a project may not do."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_loop import Behavior, ConfigurationError, ExecutionLimits, McpServer, Preset, find_agents, read_agent
from agent_loop.behavior import ContextSettings
from agent_loop.presets.agent_file import AgentTable

Write = Callable[..., Path]
WHOLE = """\
name: reviewer
description: Review a change.
model: anthropic:some
fallback_models: [openai:other]
system_prompt: |
  You review.
  You change nothing.
system_prompt_mode: replace
mode: ask
tools: [read_file, grep]
disallowed_tools: [shell]
allowed_tools: [grep]
aliases: {read_file: Read}
skills: [skills]
memory: [NOTES.md, /etc/notes.md]
handoffs: [build, tester]
without: [todos]
mcp_servers:
  - name: time
    command: uvx
    args: [mcp-server-time]
    env: {KEY: value}
behavior: {temperature: 0, thinking: low}
limits: {max_turns: 5, max_cost_usd: 0.5}
context_window: 50000
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str, name: str = "reviewer.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_file_with_every_key_is_a_preset(write: Write, tmp_path: Path) -> None:
    limits = ExecutionLimits(max_turns=5, max_total_tokens=None, max_duration=None, max_cost_usd=0.5)
    assert read_agent(write(WHOLE)) == Preset(
        name="reviewer",
        description="Review a change.",
        model="anthropic:some",
        fallbacks=["openai:other"],
        system_prompt="You review.\nYou change nothing.\n",
        prompt_mode="replace",
        mode="ask",
        tool_names=["read_file", "grep"],
        excluded_tools=("shell",),
        approved_tools=("grep",),
        aliases={"read_file": "Read"},
        skills=[tmp_path / "skills"],
        memory=[tmp_path / "NOTES.md", Path("/etc/notes.md")],
        handoffs=("build", "tester"),
        without=("todos",),
        mcp_servers=(McpServer(name="time", command="uvx", args=["mcp-server-time"], env={"KEY": "value"}),),
        behavior=Behavior(
            temperature=0.0, thinking="low", limits=limits, context=ContextSettings(max_context_tokens=50_000)
        ),
    )


def test_example_of_the_guide_is_valid(write: Write) -> None:
    page = (Path(__file__).parents[4] / "docs" / "how-to" / "use-the-embedded-agent.md").read_text("utf-8")
    (example,) = re.findall(r"```yaml\n((?:(?!```).*\n)*)```", page)
    preset = read_agent(write(example))
    assert (preset.name, preset.mode, preset.aliases) == ("reviewer", "ask", {"read_file": "Read"})
    keys = set(re.findall(r"^(\w+):", example, re.MULTILINE))
    assert keys | {"name", "disallowed_tools"} == set(AgentTable.__struct_fields__)


def test_name_is_that_of_the_file_by_default(write: Write) -> None:
    assert read_agent(write("description: x", "code-review.yml")) == Preset(name="code-review", description="x")


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "an agent file must be a mapping"),
        ("- a\n- b", 1, "an agent file must be a mapping"),
        ("name: a\nname: b", 2, 'found duplicate key "name"'),
        ("name: a\n  model: b", 2, "mapping values are not allowed here"),
        ("name: a\ntools: [read_file", 2, "expected ',' or ']'"),
        ("name: &x a\ndescription: *x", 2, "aliases are not supported"),
        ("description: x\nname: Not Valid", 2, "the name 'Not Valid' is invalid"),
        ("name: ../up", 1, "the name '../up' is invalid"),
        ("description: x\n\nprompt: be brief", 3, "unknown key `prompt`; use one of name, description, model"),
        ("description: 7", 1, "description: expected `str | null`, got `int`"),
        ("name: a\nmode: auto", 2, "mode: invalid enum value 'auto'"),
        ("name: a\ntools:\n  - read_file\n  - 7", 4, "tools.1: expected `str`, got `int`"),
        ("name: a\ntools: read_file", 2, "tools: expected `array | null`, got `str`"),
        ("name: a\nlimits:\n  max_turns: 0", 3, "limits.max_turns: expected `int` >= 1"),
        ("name: a\nlimits:\n  max_turns: many", 3, "limits.max_turns: expected `int | null`"),
        ("name: a\nlimits:\n  turns: 3", 3, "unknown key `turns`; use one of max_turns"),
        ("name: a\nbehavior:\n  temperature: -1", 3, "behavior.temperature: expected `float` >= 0"),
        ("name: a\nmcp_servers:\n  - name: b\n    port: 1", 4, "unknown key `port`; use one of name, transport"),
        ("name: a\nmcp_servers:\n  - command: b", 3, "mcp_servers.0: object missing required field `name`"),
        ("name: a\naliases:\n  read_file: 7", 2, "aliases....: expected `str`, got `int`"),
        ("name: !!python/object:os.system a", 1, "could not determine a constructor"),
    ],
)
def test_mistake_is_an_error_with_file_and_line(write: Write, text: str, line: int, problem: str) -> None:
    path = write(text)
    with pytest.raises(ConfigurationError) as raised:
        read_agent(path)
    assert str(raised.value).startswith(f"{path}:{line}: ")
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("data", "problem"), [(b"\xff\xfe", "is not UTF-8 text"), (b"#" * 300_000, "has more than 262,144 bytes")]
)
def test_file_that_is_no_text_is_an_error(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigurationError, match=problem):
        read_agent(path)


def test_missing_file_is_an_error_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be read: No such file .*; name an existing agent file"):
        read_agent(tmp_path / "none.yaml")


def test_agents_of_a_directory_are_found_and_broken_files_are_reported(write: Write, tmp_path: Path) -> None:
    write("description: one", "agents/one.yaml")
    write("description: two", "agents/two.yml")
    write("name: one", "agents/zzz.yaml")
    write("nonsense: 1", "agents/broken.yaml")
    write("description: no agent", "agents/notes.md")
    found, problems = find_agents(tmp_path / "agents")
    assert [(each.preset.name, each.path.name) for each in found] == [("one", "one.yaml"), ("two", "two.yml")]
    assert ["broken.yaml:1: unknown key `nonsense`" in problems[0], "has the name 'one' already" in problems[1]] == [
        True, True,
    ]  # fmt: skip
    assert find_agents(tmp_path / "missing") == ([], [])


@pytest.mark.all_cases
@pytest.mark.parametrize(
    "text",
    [
        "mode: yolo",
        "mode: accept-edits",
        "allowed_tools: [shell]",
        "mcp_servers: [{name: x, command: rm}]",
        "skills: [/home]",
        "skills: [.]",
        "memory: [~/.ssh/id_rsa]",
    ],
)
def test_agent_of_a_project_cannot_extend_what_it_may_do(write: Write, tmp_path: Path, text: str) -> None:
    path = write(f"description: x\n{text}\n", "project/.agents/agents/x.yaml")
    with pytest.raises(ConfigurationError, match=r"x\.yaml:2: .*: an agent of a project cannot .* --agent-file"):
        read_agent(path, project=tmp_path / "project")
    read_agent(path)


def test_link_out_of_the_project_is_outside(write: Write, tmp_path: Path) -> None:
    path = write("memory: [notes.md]", "project/x.yaml")
    (tmp_path / "project" / "notes.md").symlink_to("/etc/passwd")
    with pytest.raises(ConfigurationError, match="memory"):
        read_agent(path, project=tmp_path / "project")


@pytest.mark.parametrize("text", ["mode: plan", "mode: ask", "tools: [grep]", "memory: [../AGENTS.md]"])
def test_agent_of_a_project_can_restrict_itself(write: Write, tmp_path: Path, text: str) -> None:
    path = write(text, "project/agents/x.yaml")
    assert read_agent(path, project=tmp_path / "project").name == "x"


@pytest.mark.slow
def test_yaml_is_imported_only_for_a_file() -> None:
    code = "import sys, agent_loop.presets.agent_file; print([m for m in sys.modules if m.startswith('ruamel')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
