"""The installation of every adapter conforms to the contract of `AgentInstallation`."""

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
from agent_mux.sdk.installation import AgentInstallation, DefinitionFolder, McpFiles
from agent_mux.sdk.registry import AdapterRegistry

ADAPTERS = [adapter for adapter in AdapterRegistry() if adapter.installation() != AgentInstallation()]
SERVERS = [
    McpServer("one", command="run", args=("a b", "--x=1"), env={"KEY": "v"}),
    McpServer("two", "streamable-http", url="https://h.example/mcp", headers={"X-Key": "v"}),
    McpServer("three", "sse", url="https://h.example/sse"),
]
every_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.agent)


@pytest.fixture
def resolver(tmp_path: Path) -> InstallationResolver:
    (tmp_path / "project").mkdir()
    return InstallationResolver(environ={"HOME": str(tmp_path / "home")}, project=tmp_path / "project")


def files_of(home: AgentInstallation) -> list[ConfigFile]:
    found: list[ConfigFile] = []
    for section in (home.config, home.mcp, home.hooks):
        found += section.files if section is not None else ()
    return found


@every_adapter
def test_paths_are_absolute_and_global_ones_need_no_project(adapter: Adapter, tmp_path: Path) -> None:
    anywhere = AgentPaths(environ={"HOME": str(tmp_path)})
    project = AgentPaths(environ={"HOME": str(tmp_path)}, project=tmp_path / "project")
    home = adapter.installation()
    folders = [*(home.skills.folders if home.skills else ()), *(home.subagents.folders if home.subagents else ())]
    for one in (*files_of(home), *folders):
        path = one.path(project)
        if path is None:  # for example an additional file that a variable names
            assert isinstance(one, DefinitionFolder) or one.is_optional
            continue
        assert path.is_absolute()
        assert path.is_relative_to(tmp_path)
        if one.scope == "global":
            assert one.path(anywhere) == path
        elif one.path(anywhere) is not None:
            assert not str(path).startswith(str(tmp_path / "project"))
    assert list(tmp_path.iterdir()) == []  # resolving paths creates no files


@every_adapter
def test_fields_have_names_meanings_and_a_schema(adapter: Adapter, resolver: InstallationResolver) -> None:
    config = adapter.installation().config
    if config is None:
        return
    for name, field in config.fields.items():
        assert parse_field(name), name
        assert field.meaning, name
        assert not field.meaning.endswith("."), name
        assert not field.choices or field.kind == "string", name
    configs = AgentConfigs(resolver)
    schema = configs.schema(adapter.agent)
    assert schema["properties"] or not config.fields
    assert configs.validate(adapter.agent) == []
    assert configs.get(adapter.agent) == {}


@every_adapter
def test_configured_model_is_read_back(adapter: Adapter, resolver: InstallationResolver) -> None:
    config = adapter.installation().config
    if config is None or config.model is None:
        return
    configs = AgentConfigs(resolver)
    assert configs.model(adapter.agent) is None
    for scope in dict.fromkeys(file.scope for file in config.files):
        model = "anthropic/claude-opus-4-6"
        configs.set_model(adapter.agent, model, scope=scope)
        configured = configs.model(adapter.agent)
        assert configured is not None
        assert (configured.value, configured.scope) == (model, scope)
    assert configs.validate(adapter.agent) == []


def is_unsupported(files: McpFiles, server: McpServer) -> bool:
    try:
        files.write(server)
    except ValueError:
        return True
    return False


@every_adapter
def test_written_servers_are_read_back_unchanged(adapter: Adapter, resolver: InstallationResolver) -> None:
    files = adapter.installation().mcp
    if files is None:
        return
    servers = McpServers(resolver)
    for scope in dict.fromkeys(file.scope for file in files.files):
        for server in SERVERS:
            if is_unsupported(files, server):
                assert server.transport == "sse"
                continue
            assert files.is_enabled(files.write(server))
            servers.add(adapter.agent, server, scope=scope)
        stored = {one.name: one for one in servers.list(adapter.agent, scope=scope)}
        for server in SERVERS:
            if server.name in stored:
                as_http = replace(server, transport="streamable-http") if server.transport == "sse" else server
                assert stored[server.name].server in (server, as_http)  # some agents detect the transport
                servers.remove(adapter.agent, server.name, scope=scope)
        assert servers.list(adapter.agent, scope=scope) == []


@every_adapter
@pytest.mark.parametrize("native", [{}, {"command": 3}, {"url": None, "args": "x"}, {"command": ["a"], "env": []}])
def test_malformed_servers_raise_nothing(adapter: Adapter, native: dict[str, Any]) -> None:
    files = adapter.installation().mcp
    if files is not None:
        files.read("x", native)
        files.is_enabled(native)


@every_adapter
def test_authentication_methods_match_the_capabilities(adapter: Adapter, tmp_path: Path) -> None:
    auth = adapter.installation().auth
    if auth is None:
        return
    assert {method.name for method in auth.methods} == set(adapter.capabilities.auth_methods)
    assert auth.steps
    empty_home = AgentPaths(environ={"HOME": str(tmp_path)}, project=tmp_path)
    for method in auth.methods:
        assert method.variables or method.find is not None, method.name
        if method.find is not None:
            assert method.find(empty_home) is None, method.name


@every_adapter
def test_claimed_skills_and_plugins_exist(adapter: Adapter) -> None:
    home, can = adapter.installation(), adapter.capabilities
    # `can.mcp` is not compared: it is about the servers of one run, which an agent may not accept.
    assert (home.skills is not None) == can.skills
    assert (home.plugins is not None) == can.plugins


@every_adapter
def test_plugin_name_is_one_argument_of_the_command(adapter: Adapter) -> None:
    plugins = adapter.installation().plugins
    if plugins is None:
        return
    hostile = "a; rm -rf ~ $(x) `y`"
    for words in (plugins.install, plugins.uninstall, plugins.update, plugins.search):
        if words is not None:
            with contextlib.suppress(ValueError):  # the name is refused
                arguments = words(hostile)
                assert words is plugins.search or [word for word in arguments if hostile in word], arguments
    assert (plugins.list is None) == (plugins.parse is None)
    assert (plugins.search is None) == (plugins.parse_search is None)


@every_adapter
@pytest.mark.parametrize("printed", ["", "null", "[]", "{}", "[1]", '{"a": 3}', "\x1b[2J", "<html>", "[" * 500])
def test_plugin_output_is_parsed_or_raises_value_error(adapter: Adapter, printed: str) -> None:
    plugins = adapter.installation().plugins
    for parse in () if plugins is None else (plugins.parse, plugins.parse_search):
        if parse is not None:
            with contextlib.suppress(ValueError):
                assert isinstance(parse(printed), tuple)


@every_adapter
def test_hooks_are_added_and_removed(adapter: Adapter) -> None:
    hooks = adapter.installation().hooks
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


def test_installation_modules_are_imported_lazily() -> None:
    code = (
        "import sys; from agent_mux.sdk.registry import AdapterRegistry; list(AdapterRegistry());"
        "print([name for name in sys.modules if name.endswith('.home') and 'adapters' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
