"""What the embedded agent keeps on a machine: skills and MCP servers of the user and of a project, and its trust."""

import json
from pathlib import Path

import pytest

from agent_loop.cli.home import agent_home
from agent_mux.agents.definitions import Definition, skills, subagents
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.options import McpServer
from agent_mux_adapters.native.installation import directory


class Machine:
    """A home and a project of the embedded agent."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "work" / "project"
        self.write(self.home / "skills", "own")
        self.write(self.project / ".agents" / "skills", "shared")
        self.write(self.project / ".claude" / "skills", "claude")

    def write(self, folder: Path, name: str) -> None:
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Test.\n---\nText.\n", "utf-8")

    def trust(self, value: object) -> None:
        (self.home / "settings.json").write_text(json.dumps({"trustedProjects": value}), "utf-8")

    @property
    def installations(self) -> InstallationResolver:
        environ = {"HOME": str(self.home), "AMUX_AGENT_HOME": str(self.home)}
        return InstallationResolver(project=self.project, environ=environ)

    def list(self) -> list[Definition]:
        return skills(self.installations).list("native")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_skills_of_the_project_are_listed_as_not_trusted(machine: Machine) -> None:
    reason = f"the project is not trusted; add it to trustedProjects in {machine.home}/settings.json, or pass "
    problem = f"{reason}--trust-project"
    assert [(one.name, one.scope, one.problem) for one in machine.list()] == [
        ("own", "global", None), ("shared", "project", problem), ("claude", "project", problem),
    ]  # fmt: skip


def test_skills_of_a_trusted_project_have_no_problem(machine: Machine) -> None:
    for trusted in (machine.project, machine.project.parent):
        machine.trust([str(trusted)])
        assert [one.problem for one in machine.list()] == [None, None, None]


@pytest.mark.parametrize(
    "value", [[], ["/elsewhere"], [""], [5], ["~user-that-does-not-exist"], ["a\0b"], "work", None, {"work": True}]
)
def test_other_values_trust_no_project(machine: Machine, value: object) -> None:
    machine.trust(value)
    assert [one.problem is None for one in machine.list()] == [True, False, False]


def test_settings_that_are_not_json_trust_no_project(machine: Machine) -> None:
    (machine.home / "settings.json").write_text("{", "utf-8")
    assert [one.problem is None for one in machine.list()] == [True, False, False]


def test_mcp_servers_are_added_to_the_settings_and_to_the_project(machine: Machine) -> None:
    machine.trust([])
    servers = McpServers(machine.installations)
    servers.add("native", McpServer("a", command="run", args=("x",)))
    servers.add("native", McpServer("b", "streamable-http", url="https://h/mcp"), scope="project")
    assert json.loads((machine.home / "settings.json").read_text("utf-8")) == {
        "trustedProjects": [],
        "mcpServers": {"a": {"type": "stdio", "command": "run", "args": ["x"], "env": {}}},
    }
    assert json.loads((machine.project / ".mcp.json").read_text("utf-8")) == {
        "mcpServers": {"b": {"type": "http", "url": "https://h/mcp", "headers": {}}}
    }
    ours, theirs = servers.list("native")
    assert (ours.name, ours.scope, ours.problem) == ("a", "global", None)
    assert theirs.problem is not None
    assert "the project is not trusted" in theirs.problem
    machine.trust([str(machine.project)])
    assert [one.problem for one in servers.list("native")] == [None]


def test_disabled_server_is_listed_as_disabled(machine: Machine) -> None:
    (machine.home / "settings.json").write_text('{"mcpServers": {"a": {"command": "x", "disabled": true}}}', "utf-8")
    assert [one.enabled for one in McpServers(machine.installations).list("native")] == [False]


@pytest.mark.parametrize(
    ("variable", "value", "found"),
    [
        ("AMUX_AGENT_HOME", "/a", "/a"),
        ("AMUX_AGENT_HOME", "~/a", "/home/me/a"),
        ("XDG_DATA_HOME", "/data", "/data/agent-mux/native"),
        ("XDG_DATA_HOME", "data", "/home/me/.local/share/agent-mux/native"),
    ],
)
def test_home_is_the_one_that_the_agent_uses(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, found: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    environ = {"HOME": "/home/me", variable: value}
    assert directory(AgentPaths(environ=environ)) == agent_home(environ) == Path(found)


def test_agent_files_are_added_listed_and_removed(machine: Machine) -> None:
    file = machine.project / "reviewer.yaml"
    file.write_text("description: Reviews.\nsystem_prompt: |\n  Review.\n", "utf-8")
    agents = subagents(machine.installations)
    agents.add("native", file)
    agents.add("native", file, scope="project")
    assert [(one.name, one.scope, one.path, one.description, one.problem) for one in agents.list("native")] == [
        ("reviewer", "global", machine.home / "agents" / "reviewer.yaml", "Reviews.", None),
        ("reviewer", "project", machine.project / ".agents" / "agents" / "reviewer.yaml", "Reviews.", None),
    ]
    agents.remove("native", "reviewer")
    assert [one.scope for one in agents.list("native")] == ["global"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "description: x\nmode: yolo\nskills: [a]",
            "an agent of a project cannot have skills, mode; name the file with",
        ),
        ("description: x\nallowed_tools: [shell]", "an agent of a project cannot have allowed_tools"),
        ("description: x\nname: plan", "plan is a built-in agent"),
        ("description: x\nname: A b", "its name is invalid"),
        ("mode: ask", "its header lacks description"),
        ("- x", "cannot be read"),
        ("a: [", "cannot be read"),
    ],
)
def test_agent_file_that_is_skipped_has_the_reason(machine: Machine, text: str, problem: str) -> None:
    machine.trust([str(machine.project)])  # which is about skills and MCP servers
    file = machine.project / ".agents" / "agents" / "x.yaml"
    file.parent.mkdir()
    file.write_text(text, "utf-8")
    [one] = subagents(machine.installations).list("native")
    assert problem in (one.problem or "")


def test_agent_files_with_the_other_suffix_are_listed_and_removed(machine: Machine) -> None:
    file = machine.home / "agents" / "writer.yml"
    file.parent.mkdir(parents=True)
    file.write_text("description: Writes.\n", "utf-8")
    agents = subagents(machine.installations)
    assert [(one.name, one.path, one.problem) for one in agents.list("native")] == [("writer", file, None)]
    assert agents.remove("native", "writer").target == file
    assert not file.exists()


def test_agent_file_of_the_user_may_give_permissions(machine: Machine) -> None:
    (machine.home / "agents").mkdir()
    (machine.home / "agents" / "x.yaml").write_text("description: x\nmode: yolo\nmcp_servers: [{name: a}]", "utf-8")
    assert [one.problem for one in subagents(machine.installations).list("native")] == [None]
