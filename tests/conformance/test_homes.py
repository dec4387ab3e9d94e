"""Every adapter's home keeps to its contract, whichever agent it is of."""

import contextlib
import subprocess
import sys
from dataclasses import replace
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

import pytest

from agent_mux import McpServer
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import AgentPaths, ConfigFile
from agent_mux.sdk.documents import open_document, parse_field, with_field
from agent_mux.sdk.installation import AgentInstallation, Folder, McpFiles
from agent_mux.sdk.registry import AdapterRegistry

ADAPTERS = [adapter for adapter in AdapterRegistry() if adapter.home() != AgentInstallation()]
SERVERS = [
    McpServer("one", command="run", args=("a b", "--x=1"), env={"KEY": "v"}),
    McpServer("two", "streamable-http", url="https://h.example/mcp", headers={"X-Key": "v"}),
    McpServer("three", "sse", url="https://h.example/sse"),
]
every_home = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.agent)


@pytest.fixture
def homes(tmp_path: Path) -> InstallationResolver:
    (tmp_path / "project").mkdir()
    return InstallationResolver(environ={"HOME": str(tmp_path / "home")}, project=tmp_path / "project")


def files_of(home: AgentInstallation) -> list[ConfigFile]:
    found: list[ConfigFile] = []
    for piece in (home.config, home.mcp, home.hooks):
        found += piece.files if piece is not None else ()
    return found


@every_home
def test_places_are_absolute_and_need_no_project(adapter: Adapter, tmp_path: Path) -> None:
    anywhere = AgentPaths(environ={"HOME": str(tmp_path)})
    project = AgentPaths(environ={"HOME": str(tmp_path)}, project=tmp_path / "project")
    home = adapter.home()
    folders = [*(home.skills.folders if home.skills else ()), *(home.subagents.folders if home.subagents else ())]
    for one in (*files_of(home), *folders):
        path = one.path(project)
        if path is None:  # a further file that a variable names, say
            assert isinstance(one, Folder) or one.is_optional
            continue
        assert path.is_absolute()
        assert path.is_relative_to(tmp_path)
        if one.scope == "global":
            assert one.path(anywhere) == path
        elif one.path(anywhere) is not None:
            assert not str(path).startswith(str(tmp_path / "project"))
    assert list(tmp_path.iterdir()) == []  # looking makes nothing


@every_home
def test_fields_have_names_meanings_and_a_schema(adapter: Adapter, homes: InstallationResolver) -> None:
    config = adapter.home().config
    if config is None:
        return
    for name, field in config.fields.items():
        assert parse_field(name), name
        assert field.meaning, name
        assert not field.meaning.endswith("."), name
        assert not field.choices or field.kind == "string", name
    configs = AgentConfigs(homes)
    schema = configs.schema(adapter.agent)
    assert schema["properties"] or not config.fields
    assert configs.validate(adapter.agent) == []
    assert configs.get(adapter.agent) == {}


@every_home
def test_a_model_that_is_set_is_the_model(adapter: Adapter, homes: InstallationResolver) -> None:
    config = adapter.home().config
    if config is None or config.model is None:
        return
    configs = AgentConfigs(homes)
    assert configs.model(adapter.agent) is None
    for scope in dict.fromkeys(file.scope for file in config.files):
        model = "anthropic/claude-opus-4-6"
        configs.set_model(adapter.agent, model, scope=scope)
        said = configs.model(adapter.agent)
        assert said is not None
        assert (said.value, said.scope) == (model, scope)
    assert configs.validate(adapter.agent) == []


def refuses(files: McpFiles, server: McpServer) -> bool:
    try:
        files.write(server)
    except ValueError:
        return True
    return False


@every_home
def test_servers_are_read_as_they_were_written(adapter: Adapter, homes: InstallationResolver) -> None:
    files = adapter.home().mcp
    if files is None:
        return
    servers = McpServers(homes)
    for scope in dict.fromkeys(file.scope for file in files.files):
        for server in SERVERS:
            if refuses(files, server):
                assert server.transport == "sse"
                continue
            assert files.is_enabled(files.write(server))
            servers.add(adapter.agent, server, scope=scope)
        stored = {one.name: one for one in servers.list(adapter.agent, scope=scope)}
        for server in SERVERS:
            if server.name in stored:
                by_trying = replace(server, transport="streamable-http") if server.transport == "sse" else server
                assert stored[server.name].server in (server, by_trying)  # some find out which of both it is
                servers.remove(adapter.agent, server.name, scope=scope)
        assert servers.list(adapter.agent, scope=scope) == []


@every_home
@pytest.mark.parametrize("native", [{}, {"command": 3}, {"url": None, "args": "x"}, {"command": ["a"], "env": []}])
def test_a_server_that_is_none_is_never_an_error(adapter: Adapter, native: dict[str, Any]) -> None:
    files = adapter.home().mcp
    if files is not None:
        files.read("x", native)
        files.is_enabled(native)


@every_home
def test_credentials_are_known_as_the_capabilities_say(adapter: Adapter, tmp_path: Path) -> None:
    auth = adapter.home().auth
    if auth is None:
        return
    assert {method.name for method in auth.methods} == set(adapter.capabilities.auth_methods)
    assert auth.steps
    nowhere = AgentPaths(environ={"HOME": str(tmp_path)}, project=tmp_path)
    for method in auth.methods:
        assert method.variables or method.find is not None, method.name
        if method.find is not None:
            assert method.find(nowhere) is None, method.name


@every_home
def test_what_is_claimed_is_there(adapter: Adapter) -> None:
    home, can = adapter.home(), adapter.capabilities
    # Not `can.mcp`: that is about the servers of one run, which an agent may not take although it keeps some.
    assert (home.skills is not None) == can.skills
    assert (home.plugins is not None) == can.plugins


@every_home
def test_a_name_stays_one_word_of_a_plugin_command(adapter: Adapter) -> None:
    plugins = adapter.home().plugins
    if plugins is None:
        return
    hostile = "a; rm -rf ~ $(x) `y`"
    for words in (plugins.install, plugins.uninstall, plugins.update, plugins.search):
        if words is not None:
            with contextlib.suppress(ValueError):  # it takes no such name at all
                told = words(hostile)
                assert words is plugins.search or [word for word in told if hostile in word], told
    assert (plugins.list is None) == (plugins.parse is None)
    assert (plugins.search is None) == (plugins.parse_search is None)


@every_home
@pytest.mark.parametrize("printed", ["", "null", "[]", "{}", "[1]", '{"a": 3}', "\x1b[2J", "<html>", "[" * 500])
def test_whatever_a_plugin_command_prints_is_a_list_or_a_value_error(adapter: Adapter, printed: str) -> None:
    plugins = adapter.home().plugins
    for parse in () if plugins is None else (plugins.parse, plugins.parse_search):
        if parse is not None:
            with contextlib.suppress(ValueError):
                assert isinstance(parse(printed), tuple)


@every_home
def test_hooks_are_put_in_and_taken_out_again(adapter: Adapter) -> None:
    hooks = adapter.home().hooks
    if hooks is None:
        return
    for file in hooks.files:
        for native in (name for names in hooks.types.values() for name in names):
            mine, theirs = "/bin/amux hooks x handle y", "/usr/bin/theirs --x"
            both = hooks.add(hooks.add(None, native, theirs), native, mine)
            assert hooks.commands(both) == (theirs, mine)
            assert hooks.commands(hooks.remove(both, partial(eq, mine))) == (theirs,)
            assert hooks.remove(hooks.add(None, native, mine), partial(eq, mine)) is None
            text = with_field("", file.format, hooks.place(native), both)
            assert open_document(text, file.format).data()


def test_a_home_is_not_imported_for_a_run() -> None:
    code = (
        "import sys; from agent_mux.sdk.registry import AdapterRegistry; list(AdapterRegistry());"
        "print([name for name in sys.modules if name.endswith('.home') and 'adapters' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
