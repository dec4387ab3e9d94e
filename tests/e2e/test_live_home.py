"""Our view of an agent's installation agrees with the agent's own view."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from tests.e2e.harness import LiveAgent
from tests.e2e.ways import ALL_AGENTS, CORE

from agent_mux import CapabilityError, McpServer
from agent_mux.agents.auth import Auth
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.definitions import Definitions, skills, subagents
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux.agents.plugins import Plugins
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.config import Scope
from agent_mux_testing import mcp_echo
from agent_mux_testing.live import Say, Shell

pytestmark = pytest.mark.anyio
_Value = TypeVar("_Value")
SKILL = "Knows how the quokka sings"
SUBAGENT = "Counts the wombats of a project"
BOUND = 120.0  # seconds for a command of the agent's CLI


@dataclass(frozen=True)
class InspectedInstallation:
    """An agent's installation, seen by the agent's CLI and by agent-mux."""

    live: LiveAgent
    adapter: Adapter
    resolver: InstallationResolver

    def run_cli(self, *words: str, environment: dict[str, str] | None = None, answers: str = "") -> tuple[int, str]:
        """Run a command of the agent's CLI. Return its exit code and its output (both streams)."""
        start = self.live.launch
        arguments, stdin = self.live.kit.installation.split_input(words)
        done = subprocess.run(
            [start.environment[self.adapter.executable_variable], *arguments],
            env=start.environment if environment is None else environment,
            cwd=self.live.workspace, input=(stdin or answers).encode(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOUND, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.decode("utf-8", "replace")


@pytest.fixture
def home(live: LiveAgent) -> InspectedInstallation:
    """Start a scripted model, and return the installation that the kit wrote."""
    live.script(live.answer(Say("Nothing to do.")))
    environment = live.launch.environment
    live.kit.installation.trust(live.home, live.workspace)
    return InspectedInstallation(live, live.adapter, InstallationResolver(environ=environment, project=live.workspace))


def require(value: _Value | None, feature: str, home: InspectedInstallation) -> _Value:
    """Return the value. Raise `CapabilityError`, which a gap expects, when the agent does not have it."""
    if value is None:
        raise CapabilityError(home.live.agent, feature)
    return value


def scopes_of(*found: Scope) -> list[Scope]:
    return list(dict.fromkeys(found))


@ALL_AGENTS
def test_home_mcp_servers_added_by_amux(home: InspectedInstallation) -> None:
    """Servers that we add are listed by the agent's CLI, and no longer listed after we remove them."""
    files = require(home.adapter.installation().mcp, "MCP servers", home)
    words = require(home.live.kit.installation.list_mcp, "a list of its MCP servers", home)
    servers = McpServers(home.resolver)
    scopes = scopes_of(*(file.scope for file in files.files))
    for scope in scopes:
        server = McpServer(f"ours-{scope}", command=mcp_echo.__file__, args=("--x",), env={"KEY": "v"})
        servers.add(home.live.agent, server, scope=scope)
    stored = {one.name: one for one in servers.list(home.live.agent)}
    for scope in scopes:
        one = stored[f"ours-{scope}"]
        assert one.scope == scope
        assert one.server == McpServer(one.name, command=mcp_echo.__file__, args=("--x",), env={"KEY": "v"})
    _, printed = home.run_cli(*words)
    assert [scope for scope in scopes if f"ours-{scope}" not in printed] == [], printed
    for scope in scopes:
        servers.remove(home.live.agent, f"ours-{scope}", scope=scope)
    _, printed = home.run_cli(*words)
    assert [scope for scope in scopes if f"ours-{scope}" in printed] == [], printed


@ALL_AGENTS
def test_home_mcp_servers_added_by_the_agent(home: InspectedInstallation) -> None:
    """A server that the agent's CLI adds is listed by us."""
    require(home.adapter.installation().mcp, "MCP servers", home)
    words = require(home.live.kit.installation.add_mcp, "adding MCP servers", home)
    args = (mcp_echo.__file__, "one", "two words")  # a working server, because some agents connect to it first
    code, printed = home.run_cli(
        *words("theirs", sys.executable, args), answers=home.live.kit.installation.add_mcp_input
    )
    assert code == 0, printed
    [stored] = [one for one in McpServers(home.resolver).list(home.live.agent) if one.name == "theirs"]
    assert stored.scope == "global"
    assert stored.enabled
    assert stored.server == McpServer("theirs", command=sys.executable, args=args)


@CORE
@ALL_AGENTS
async def test_home_skills(home: InspectedInstallation, tmp_path: Path) -> None:
    """The description of an added skill reaches the model."""
    require(home.adapter.installation().skills, "skills", home)
    folder = tmp_path / "singing"
    folder.mkdir()
    (folder / "SKILL.md").write_text(f"---\nname: singing\ndescription: {SKILL}\n---\nSing.\n", "utf-8")
    await assert_reaches_the_model(home, skills(home.resolver), folder, SKILL)


@ALL_AGENTS
async def test_home_subagents(home: InspectedInstallation, tmp_path: Path) -> None:
    """The description of an added sub-agent reaches the model."""
    folders = require(home.adapter.installation().subagents, "sub-agents", home)
    file = tmp_path / f"counter{folders.file}"
    if folders.header == "toml":
        text = f'name = "counter"\ndescription = "{SUBAGENT}"\ndeveloper_instructions = "Count."\n'
    elif folders.header == "yaml_file":
        text = f"description: {SUBAGENT}\nsystem_prompt: Count.\n"
    else:
        text = f"---\nname: counter\ndescription: {SUBAGENT}\n---\nCount.\n"
    file.write_text(text, "utf-8")
    await assert_reaches_the_model(home, subagents(home.resolver), file, SUBAGENT)


async def assert_reaches_the_model(
    home: InspectedInstallation, definitions: Definitions, source: Path, text: str
) -> None:
    """Assert that the text is in the model's requests after the definition is added, and not after it is removed."""
    agent = home.live.agent
    options = (
        {}
        if home.live.kit.installation.model_listing_subagents is None
        else {"model": home.live.kit.installation.model_listing_subagents}
    )
    own = [folder.scope for folder, _ in definitions.where(agent) if not folder.is_shared]
    for scope in scopes_of(*own):
        definitions.add(agent, source, scope=scope)
        [added] = definitions.list(agent)
        home.live.kit.installation.grant_consent(home.live.home, home.live.workspace, added.path)
        home.live.script(home.live.answer(Say("Nothing to do.")))
        await home.live.run(**options)
        bodies = [json.dumps(request.body) for request in home.live.model.requests]
        assert any(text in body for body in bodies), f"added for {scope}"
        [found] = definitions.list(agent)
        assert (found.scope, found.description, found.problem) == (scope, text, None)
        definitions.remove(agent, found.name)
        assert definitions.list(agent) == []
    home.live.script(home.live.answer(Say("Nothing to do.")))
    await home.live.run(**options)
    assert not any(text in json.dumps(request.body) for request in home.live.model.requests)


@ALL_AGENTS
def test_home_credentials(home: InspectedInstallation) -> None:
    """Credentials are found in this home, and not in an empty one, as by the agent's CLI."""
    auth = require(home.adapter.installation().auth, "authentication", home)
    state = Auth(home.resolver).check(home.live.agent)
    assert (state.status, state.method in {method.name for method in auth.methods}) == ("authenticated", True), state
    start = home.live.launch.environment
    bare = {name: value for name, value in start.items() if name in {"PATH", "TERM", "LANG"}}
    bare["HOME"] = str(home.live.home.with_name("empty"))
    Path(bare["HOME"]).mkdir()
    unauthenticated = Auth(InstallationResolver(environ=bare, project=home.live.workspace)).check(home.live.agent)
    assert unauthenticated.status in {"unauthenticated", "unknown"}, unauthenticated
    words = home.live.kit.installation.report_login
    if words is not None:
        is_logged_in = home.live.kit.installation.is_logged_in
        assert is_logged_in(*home.run_cli(*words)), home.run_cli(*words)
        assert not is_logged_in(*home.run_cli(*words, environment=bare)), home.run_cli(*words, environment=bare)


@ALL_AGENTS
def test_home_setup_commands(home: InspectedInstallation) -> None:
    """The agent's CLI has each command of the setup steps."""
    auth = require(home.adapter.installation().auth, "authentication", home)
    assert auth.steps
    for step in auth.steps:
        if step.command:
            code, printed = home.run_cli(*step.command, "--help")
            assert code == 0, printed
            assert " ".join(step.command) in printed, printed


@ALL_AGENTS
def test_home_plugins(home: InspectedInstallation, tmp_path: Path) -> None:
    """Plugins are installed, listed and uninstalled by the agent's own commands."""
    require(home.adapter.installation().plugins, "plugins", home)
    first, source, name = require(home.live.kit.installation.write_plugin, "a plugin from a folder", home)(
        tmp_path / "plugin"
    )
    for words in first:
        code, printed = home.run_cli(*words)
        assert code == 0, printed
    plugins, agent = Plugins(home.resolver), home.live.agent
    before = plugins.list(agent)
    assert name not in {plugin.name for plugin in before}
    assert plugins.install(agent, source, dry_run=True).answer is None
    assert plugins.list(agent) == before
    plugins.install(agent, source)
    assert {plugin.name for plugin in plugins.list(agent)} == {name, *(plugin.name for plugin in before)}
    plugins.uninstall(agent, name)
    assert plugins.list(agent) == before


@ALL_AGENTS
async def test_home_model(home: InspectedInstallation) -> None:
    """The model that we set is the one that the agent requests."""
    config = require(home.adapter.installation().config, "configuration", home)
    require(config.model, "a model in its configuration", home)
    model = require(home.live.kit.installation.model, "another model", home)
    configs = AgentConfigs(home.resolver)
    configs.set_model(home.live.agent, model)
    configured = configs.model(home.live.agent)
    assert configured is not None
    assert configured.value == model
    assert configs.validate(home.live.agent) == []
    words = home.live.kit.installation.print_model
    if words is not None:
        code, printed = home.run_cli(*words)
        assert (code, printed.strip()) == (0, model)
        return
    await home.live.run()
    bare = re.split("[/:]", model)[-1]
    requested = [json.dumps(request.body.get("model", "")) + request.path for request in home.live.model.requests]
    assert any(bare in one for one in requested), requested


@CORE
@ALL_AGENTS
async def test_home_host_variables(home: InspectedInstallation) -> None:
    """Commands of the agent have the environment variables that identify the host agent."""
    variables = require(
        home.adapter.installation().host_variables or None,
        "a variable that identifies it in the environment of its commands",
        home,
    )
    expansions = " ".join(f"${{{name}:+{name}=set}}" for name in variables)
    home.live.script(home.live.answer(Shell(f"echo {expansions} > variables.txt")), home.live.answer(Say("Done.")))
    await home.live.run()
    assert home.live.file("variables.txt").read_text("utf-8").split() == [f"{name}=set" for name in variables]
