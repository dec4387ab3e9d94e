"""The MCP servers that the user and a project store: precedence, trust, variables, and files that cannot be used."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_loop.cli import mcp_settings
from agent_loop.cli.arguments import parse_arguments
from agent_loop.cli.errors import UsageError
from agent_loop.cli.mcp_settings import ConfiguredServers, configured_servers
from agent_loop.cli.protocol import McpServerSettings, StartCommand
from agent_loop.cli.settings import mcp_servers_of
from agent_loop.mcp import McpServer

SESAME = "sesame-open-1234"


class Machine:
    """The home directory of the agent, a project, and an environment."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.environ = {"AMUX_AGENT_HOME": str(self.home)}

    def settings(self, servers: Any, **more: Any) -> Path:
        return self._write(self.home / "settings.json", {"mcpServers": servers, **more})

    def project_file(self, servers: Any) -> Path:
        return self._write(self.project / ".mcp.json", {"mcpServers": servers})

    def _write(self, path: Path, content: Any) -> Path:
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    def configured(self, *, is_trusted: bool = False, named: tuple[str, ...] = ()) -> ConfiguredServers:
        return configured_servers(self.environ, self.project, is_trusted=is_trusted, named=named)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_files_there_are_no_servers(machine: Machine) -> None:
    assert machine.configured() == ConfiguredServers()


def test_programs_and_urls_of_the_settings_become_servers(machine: Machine) -> None:
    machine.settings({
        "files": {"command": "run", "args": ["--x"], "env": {"K": "v"}, "unknown": 1, "honorReadOnly": True},
        "web": {"type": "http", "url": "https://h/mcp", "headers": {"A": "b"}, "disclosure": "lazy"},
        "old": {"type": "sse", "url": "https://h/sse"},
        "bare": {"url": "https://h/bare"},
        "off": {"command": "run", "disabled": True},
    })  # fmt: skip
    cwd = str(machine.project)
    assert machine.configured().servers == (
        McpServer(name="files", command="run", args=["--x"], env={"K": "v"}, cwd=cwd, honor_read_only=True),
        McpServer(
            name="web",
            transport="streamable-http",
            url="https://h/mcp",
            headers={"A": "b"},
            args=[],
            cwd=cwd,
            disclosure="lazy",
        ),
        McpServer(name="old", transport="sse", url="https://h/sse", args=[], cwd=cwd),
        McpServer(name="bare", transport="streamable-http", url="https://h/bare", args=[], cwd=cwd),
    )


def test_servers_of_a_project_start_only_if_it_is_trusted(machine: Machine) -> None:
    machine.project_file({"files": {"command": "run", "honorReadOnly": True}})
    untrusted = machine.configured()
    assert untrusted.servers == ()
    [note] = untrusted.notes
    assert note == (
        "the MCP servers of .mcp.json (files) are not started, because the project is not trusted; pass "
        "--trust-project (trustProject), or name its directory in trustedProjects of settings.json"
    )
    trusted = machine.configured(is_trusted=True)
    [server] = trusted.servers
    assert (server.command, server.honor_read_only, trusted.notes) == ("run", False, ())
    machine.settings({}, trustedProjects=[str(machine.project.parent)])
    assert machine.configured() == trusted


def test_flags_trust_the_whole_project_or_only_its_skills() -> None:
    whole, skills = (
        StartCommand(**parse_arguments([flag]).flags) for flag in ("--trust-project", "--trust-project-skills")
    )
    assert (whole.trust_project, whole.trust_project_skills) == (True, False)
    assert (skills.trust_project, skills.trust_project_skills) == (False, True)


def test_note_about_a_project_is_one_line_of_bounded_length(machine: Machine) -> None:
    machine.project_file({f"\x1b]0;evil\x07\n{number}" + "x" * 500: {} for number in range(1000)})
    [note] = machine.configured().notes
    assert note.isprintable()
    assert len(note) < 700
    assert "and 995 more" in note


def test_of_equal_names_the_run_comes_before_the_project_and_the_project_before_the_user(machine: Machine) -> None:
    machine.settings({"a": {"command": "user"}, "b": {"command": "user"}, "c": {"command": "user"}})
    machine.project_file({"b": {"command": "project"}, "c": {"command": "project"}, "a": {"disabled": True}})
    stored = machine.configured(is_trusted=True).servers
    assert [(server.name, server.command) for server in stored] == [("b", "project"), ("c", "project")]
    start = StartCommand(mcp_servers=[McpServerSettings(name="c", command="run")])
    preset = [McpServer(name="b", command="agent file")]
    servers = mcp_servers_of(start, machine.project, preset, stored)
    assert {server.name: server.command for server in servers} == {"b": "agent file", "c": "run"}


def test_variables_are_replaced_in_every_value(machine: Machine) -> None:
    machine.environ |= {"BIN": "/opt", "TOKEN": SESAME, "EMPTY": ""}
    machine.settings({
        "files": {"command": "${BIN}/run", "args": ["${PORT:-80}", "$BIN", "${EMPTY:-x}"], "env": {"T": "${TOKEN}"}},
        "web": {"url": "https://${HOST:-h}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    })  # fmt: skip
    files, web = machine.configured().servers
    assert (files.command, files.args, files.env) == ("/opt/run", ["80", "$BIN", ""], {"T": SESAME})
    assert (web.url, web.headers) == ("https://h/mcp", {"Authorization": f"Bearer {SESAME}"})
    assert SESAME not in repr((files, web))


def test_secret_in_an_argument_is_not_in_messages(machine: Machine) -> None:
    machine.environ |= {"API_TOKEN": SESAME, "DIRECTORY": "/opt/servers"}
    machine.settings({"a": {"command": "run", "args": ["--key=${API_TOKEN}", "${DIRECTORY}"]}})
    [server] = machine.configured().servers
    printed = f"usage: {' '.join(server.args)}"
    assert server.without_secrets(printed) == "usage: --key=[redacted] /opt/servers"


def test_server_with_a_variable_that_is_not_set_is_not_started(machine: Machine) -> None:
    path = machine.settings({"a": {"url": "${HOST}", "headers": {"A": "${KEY}"}}, "b": {"command": "run"}})
    found = machine.configured()
    assert [server.name for server in found.servers] == ["b"]
    [note] = found.notes
    assert note == (
        f"the MCP server a of {path} is not started: no value for HOST, KEY; set the variable, or write a default: "
        "${HOST:-DEFAULT}"
    )
    assert machine.configured(named=("a",)).notes == ()


BROKEN = [
    ('{"mcpServers": {\n  "a": {,}}}', r"cannot be read: line 2, column 9: .*; fix or remove it"),
    ("[]", "cannot be read: it is not a JSON object"),
    ('{"mcpServers": []}', "mcpServers is not a table of servers"),
]
UNUSABLE = [
    ("3", "expected `object`, got `int`"),
    ('{"command": "x", "args": ["1", 2]}', "args[1]: expected `str`, got `int`"),
    ('{"type": "ws", "url": "x"}', "type: invalid enum value 'ws'"),
    ("{}", 'it has no command, which the transport "stdio" starts'),
    ('{"url": "file:///x"}', "it needs a URL with http or https"),
]


@pytest.mark.parametrize(("text", "problem"), BROKEN)
def test_broken_file_of_the_user_or_of_a_trusted_project_is_an_error(machine: Machine, text: str, problem: str) -> None:
    (machine.project / ".mcp.json").write_text(text, "utf-8")
    with pytest.raises(UsageError, match=rf"/project/\.mcp\.json.*{problem}"):
        machine.configured(is_trusted=True)
    (machine.project / ".mcp.json").unlink()
    (machine.home / "settings.json").write_text(text, "utf-8")
    with pytest.raises(UsageError, match=rf"/home/settings\.json.*{problem}"):
        machine.configured()


@pytest.mark.parametrize(("entry", "problem"), UNUSABLE)
def test_entry_that_cannot_be_used_is_a_note_and_the_others_start(machine: Machine, entry: str, problem: str) -> None:
    text = f'{{"mcpServers": {{"a": {entry}, "b": {{"command": "y"}}}}}}'
    for path, is_trusted in ((machine.project / ".mcp.json", True), (machine.home / "settings.json", False)):
        path.write_text(text, "utf-8")
        configured = machine.configured(is_trusted=is_trusted)
        assert [server.name for server in configured.servers] == ["b"]
        assert configured.notes == (f"the MCP server a of {path} is not started: {problem}",)
        path.unlink()


def test_entry_whose_name_cannot_be_one_of_tools_is_a_note(machine: Machine) -> None:
    (machine.home / "settings.json").write_text('{"mcpServers": {"a b": {"command": "x"}}}', "utf-8")
    [note] = machine.configured().notes
    assert note.endswith("is not started: it has an invalid name: use 1 to 64 letters, digits, _ and -")


@pytest.mark.parametrize(("text", "problem"), BROKEN)
def test_broken_file_of_an_untrusted_project_is_a_note(machine: Machine, text: str, problem: str) -> None:
    (machine.project / ".mcp.json").write_text(text, "utf-8")
    [note] = machine.configured().notes
    assert note.startswith(f"no MCP servers of this project, which is not trusted: {machine.project}/.mcp.json")


def test_file_that_is_too_large_is_refused(machine: Machine) -> None:
    (machine.project / ".mcp.json").write_text(" " * (1 << 20) + "{}", "utf-8")
    assert "has more than 1,048,576 bytes" in machine.configured().notes[0]


def test_without_the_sdk_stored_servers_are_a_note_and_no_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.settings({"a": {"command": "run"}})
    monkeypatch.setattr(mcp_settings, "find_spec", lambda _: None)
    found = machine.configured()
    assert found.servers == ()
    [note] = found.notes
    assert note == (
        "MCP servers are not started (a): the package mcp, which they need, is not installed; try: "
        'pip install "agent-mux[mcp]"'
    )
