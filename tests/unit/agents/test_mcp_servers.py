"""MCP servers in an agent's files."""

from pathlib import Path

import pytest
from tests.unit.sample_agent import AGENT, sample_resolver

from agent_mux import AgentMuxError, CapabilityError, McpServer, ValidationError
from agent_mux.agents.mcp_servers import McpServers
from agent_mux.sdk.config import AgentPaths, ConfigFile
from agent_mux.sdk.installation import AgentInstallation, McpFiles
from agent_mux_adapters._dialects.mcp_servers import read_server, write_server

FILE = """\
mode = "slow"  # stays

[servers.old]  # the first
command = "dig"
args = ["deep"]
off = true

[servers.odd]
what = 1
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "home" / ".wombat" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(FILE, "utf-8")
    return path


@pytest.fixture
def servers(tmp_path: Path, path: Path) -> McpServers:
    return McpServers(sample_resolver(tmp_path))


def test_list_includes_servers_that_are_not_understood(servers: McpServers) -> None:
    old, odd = servers.list("wom")
    assert (old.name, old.scope, old.enabled, old.wins) == ("old", "global", False, True)
    assert old.server == McpServer("old", command="dig", args=("deep",))
    assert (odd.name, odd.server) == ("odd", None)


def test_add_and_remove_restore_every_byte(servers: McpServers, path: Path) -> None:
    new = McpServer("new", command="run", args=("a b",), env={"KEY": "v"})
    servers.add(AGENT, new)
    assert [one.server for one in servers.list(AGENT) if one.name == "new"] == [new]
    assert FILE in path.read_text("utf-8")
    servers.remove(AGENT, "new")
    assert path.read_text("utf-8") == FILE


def test_project_overrides_global(servers: McpServers) -> None:
    servers.add(AGENT, McpServer("old", "streamable-http", url="https://h/mcp", headers={"A": "b"}), scope="project")
    found = [(one.scope, one.wins) for one in servers.list(AGENT) if one.name == "old"]
    assert found == [("global", False), ("project", True)]
    servers.remove(AGENT, "old")
    assert [one.scope for one in servers.list(AGENT) if one.name == "old"] == ["global"]


def test_existing_server_is_replaced_only_with_force(servers: McpServers, path: Path) -> None:
    with pytest.raises(ValidationError, match="--force replaces it"):
        servers.add(AGENT, McpServer("old", command="x"))
    assert path.read_text("utf-8") == FILE
    servers.add(AGENT, McpServer("old", command="x"), force=True)
    assert servers.list(AGENT)[0].server == McpServer("old", command="x")


def test_dry_run_writes_nothing(servers: McpServers, path: Path) -> None:
    assert 'command = "x"' in servers.add(AGENT, McpServer("new", command="x"), dry_run=True).diff()
    assert "-command" in servers.remove(AGENT, "old", dry_run=True).diff()
    assert path.read_text("utf-8") == FILE


def test_invalid_server_is_rejected(servers: McpServers, tmp_path: Path, path: Path) -> None:
    for server in (McpServer("../x", command="x"), McpServer("x"), McpServer("x", "sse", command="x")):
        with pytest.raises(ValidationError):
            servers.add(AGENT, server)
    with pytest.raises(CapabilityError, match="the transport sse"):
        servers.add(AGENT, McpServer("x", "sse", url="https://h"))
    with pytest.raises(CapabilityError, match="it has: global, project"):
        servers.add(AGENT, McpServer("x", command="x"), scope="local")
    with pytest.raises(ValidationError, match="did you mean 'old'"):
        servers.remove(AGENT, "odl")
    with pytest.raises(ValidationError, match="it has: odd, old"):
        servers.remove(AGENT, "zzz")
    with pytest.raises(CapabilityError):
        McpServers(sample_resolver(tmp_path, AgentInstallation())).list(AGENT)
    assert path.read_text("utf-8") == FILE


def test_invalid_file_is_not_changed(servers: McpServers, path: Path) -> None:
    path.write_text("x = \n", "utf-8")
    with pytest.raises(AgentMuxError, match=r"line 1, column"):
        servers.add(AGENT, McpServer("new", command="x"))
    assert path.read_text("utf-8") == "x = \n"


def test_value_that_is_not_a_table_has_no_servers(servers: McpServers, path: Path) -> None:
    path.write_text("servers = 3\n", "utf-8")
    assert servers.list(AGENT) == []


def in_project(name: str) -> ConfigFile:
    return ConfigFile(
        scope="project", format="json", path=lambda place: place.project_file(name), is_shared=name == "shared.json"
    )


TWO_FILES = AgentInstallation(
    mcp=McpFiles(files=(in_project("shared.json"), in_project("own.json")), read=read_server, write=write_server)
)


def test_shared_file_is_only_removed_from(tmp_path: Path) -> None:
    servers = McpServers(sample_resolver(tmp_path, TWO_FILES))
    shared, own = (tmp_path / "project" / name for name in ("shared.json", "own.json"))
    shared.write_text('{"old": {"command": "dig"}}\n', "utf-8")
    servers.add(AGENT, McpServer("old", command="new"), scope="project")
    assert [(one.path, one.wins) for one in servers.list(AGENT)] == [(shared, False), (own, True)]
    servers.remove(AGENT, "old")
    assert [(one.path, one.wins) for one in servers.list(AGENT)] == [(shared, True)]
    servers.remove(AGENT, "old")
    assert shared.read_text("utf-8") == "{}\n"


def several(tmp_path: Path) -> McpServers:
    """Return an agent with two files for one scope; servers listed under `off` are disabled."""
    files = tuple(
        ConfigFile(
            scope="global", format="json", path=lambda place, name=name: place.home / name,  # type: ignore[misc]
            table=lambda _: ("servers",), is_optional=name == "old.json",
        )
        for name in ("old.json", "new.json")
    )  # fmt: skip

    def is_switched_off(place: AgentPaths, name: str) -> bool:
        return (place.home / "off" / name).exists()

    mcp = McpFiles(files=files, read=read_server, write=write_server, is_switched_off=is_switched_off)
    (tmp_path / "home").mkdir()
    return McpServers(sample_resolver(tmp_path, AgentInstallation(mcp=mcp)))


def test_existing_file_is_changed(tmp_path: Path) -> None:
    servers, home = several(tmp_path), tmp_path / "home"
    (home / "old.json").write_text("{}", "utf-8")
    assert servers.add(AGENT, McpServer("a", command="x")).path == home / "old.json"
    (home / "new.json").write_text("{}", "utf-8")
    assert servers.add(AGENT, McpServer("b", command="x")).path == home / "new.json"
    assert [(one.name, one.path.name) for one in servers.list(AGENT)] == [("a", "old.json"), ("b", "new.json")]
    assert servers.remove(AGENT, "a").path == home / "old.json"  # the file that contains it
    assert [one.name for one in servers.list(AGENT)] == ["b"]


def test_optional_file_is_not_created(tmp_path: Path) -> None:
    assert several(tmp_path).add(AGENT, McpServer("a", command="x")).path == tmp_path / "home" / "new.json"


def test_server_can_be_disabled_in_another_file(tmp_path: Path) -> None:
    servers = several(tmp_path)
    for name in ("a", "b"):
        servers.add(AGENT, McpServer(name, command="x"))
    (tmp_path / "home" / "off").mkdir()
    (tmp_path / "home" / "off" / "a").touch()
    assert [(one.name, one.enabled) for one in servers.list(AGENT)] == [("a", False), ("b", True)]


def test_servers_of_a_file_that_the_agent_does_not_use_win_over_none(tmp_path: Path) -> None:
    files = (
        ConfigFile(scope="global", format="json", path=lambda place: place.home / "own.json"),
        in_project("untrusted.json"),
        in_project("unreadable.json"),
    )

    def objection(place: AgentPaths, file: ConfigFile) -> str | None:
        if file.path(place) == tmp_path / "project" / "unreadable.json":
            raise PermissionError(13, "Permission denied")
        return "not trusted" if file.scope == "project" else None

    mcp = McpFiles(files=files, read=read_server, write=write_server, objection=objection)
    (tmp_path / "home").mkdir()
    servers = McpServers(sample_resolver(tmp_path, AgentInstallation(mcp=mcp)))
    for path in (tmp_path / "home" / "own.json", tmp_path / "project" / "untrusted.json"):
        path.write_text('{"a": {"command": "dig"}}', "utf-8")
    unreadable = tmp_path / "project" / "unreadable.json"
    unreadable.write_text('{"b": {"command": "dig"}}', "utf-8")
    problem = f"cannot determine whether {unreadable} is used: Permission denied"
    assert [(one.name, one.scope, one.wins, one.problem) for one in servers.list(AGENT)] == [
        ("a", "global", True, None), ("a", "project", False, "not trusted"), ("b", "project", False, problem),
    ]  # fmt: skip
    assert servers.remove(AGENT, "a").path == tmp_path / "home" / "own.json"  # the one that the agent uses
    assert servers.remove(AGENT, "a").path == tmp_path / "project" / "untrusted.json"
