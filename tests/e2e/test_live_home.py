"""What we know of an agent's home is what the agent itself knows of it."""

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
_Known = TypeVar("_Known")
SKILL = "Knows how the quokka sings"
SUBAGENT = "Counts the wombats of a project"
BOUND = 120.0  # seconds for a command of the agent


@dataclass(frozen=True)
class Home:
    """An agent's home, looked at from both sides."""

    live: LiveAgent
    adapter: Adapter
    homes: InstallationResolver

    def ask(self, *words: str, environment: dict[str, str] | None = None, answers: str = "") -> tuple[int, str]:
        """A command of the agent's own: its exit code, and what it printed."""
        start = self.live.launch
        behind, told = self.live.kit.installation.split_input(words)
        done = subprocess.run(
            [start.environment[self.adapter.executable_variable], *behind],
            env=start.environment if environment is None else environment,
            cwd=self.live.workspace, input=(told or answers).encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=BOUND, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.decode("utf-8", "replace")


@pytest.fixture
def home(live: LiveAgent) -> Home:
    """The model is there, and has something to say; the home is what the kit made of it."""
    live.script(live.answer(Say("Nothing to do.")))
    environment = live.launch.environment
    live.kit.installation.trust(live.home, live.workspace)
    return Home(live, live.adapter, InstallationResolver(environ=environment, project=live.workspace))


def needs(known: _Known | None, what: str, home: Home) -> _Known:
    """What the agent has. Raises what a gap accounts for."""
    if known is None:
        raise CapabilityError(home.live.agent, what)
    return known


def scopes_of(*found: Scope) -> list[Scope]:
    return list(dict.fromkeys(found))


@ALL_AGENTS
def test_home_mcp_servers_added_by_amux(home: Home) -> None:
    """What we add is listed by the agent."""
    files = needs(home.adapter.home().mcp, "MCP servers", home)
    words = needs(home.live.kit.installation.list_mcp, "a list of its MCP servers", home)
    servers = McpServers(home.homes)
    scopes = scopes_of(*(file.scope for file in files.files))
    for scope in scopes:
        server = McpServer(f"ours-{scope}", command=mcp_echo.__file__, args=("--x",), env={"KEY": "v"})
        servers.add(home.live.agent, server, scope=scope)
    stored = {one.name: one for one in servers.list(home.live.agent)}
    for scope in scopes:
        one = stored[f"ours-{scope}"]
        assert one.scope == scope
        assert one.server == McpServer(one.name, command=mcp_echo.__file__, args=("--x",), env={"KEY": "v"})
    _, printed = home.ask(*words)
    assert [scope for scope in scopes if f"ours-{scope}" not in printed] == [], printed
    for scope in scopes:
        servers.remove(home.live.agent, f"ours-{scope}", scope=scope)
    _, printed = home.ask(*words)
    assert [scope for scope in scopes if f"ours-{scope}" in printed] == [], printed


@ALL_AGENTS
def test_home_mcp_servers_added_by_the_agent(home: Home) -> None:
    """What the agent adds is listed by us."""
    needs(home.adapter.home().mcp, "MCP servers", home)
    words = needs(home.live.kit.installation.add_mcp, "adding MCP servers", home)
    args = (mcp_echo.__file__, "one", "two words")  # it works: some agents look first
    code, printed = home.ask(*words("theirs", sys.executable, args), answers=home.live.kit.installation.add_mcp_input)
    assert code == 0, printed
    [stored] = [one for one in McpServers(home.homes).list(home.live.agent) if one.name == "theirs"]
    assert stored.scope == "global"
    assert stored.enabled
    assert stored.server == McpServer("theirs", command=sys.executable, args=args)


@CORE
@ALL_AGENTS
async def test_home_skills(home: Home, tmp_path: Path) -> None:
    """What we add is told to the model."""
    needs(home.adapter.home().skills, "skills", home)
    folder = tmp_path / "singing"
    folder.mkdir()
    (folder / "SKILL.md").write_text(f"---\nname: singing\ndescription: {SKILL}\n---\nSing.\n", "utf-8")
    await is_told(home, skills(home.homes), folder, SKILL)


@ALL_AGENTS
async def test_home_subagents(home: Home, tmp_path: Path) -> None:
    """What we add is told to the model."""
    folders = needs(home.adapter.home().subagents, "sub-agents", home)
    file = tmp_path / f"counter{folders.file}"
    if folders.header == "toml":
        text = f'name = "counter"\ndescription = "{SUBAGENT}"\ndeveloper_instructions = "Count."\n'
    else:
        text = f"---\nname: counter\ndescription: {SUBAGENT}\n---\nCount.\n"
    file.write_text(text, "utf-8")
    await is_told(home, subagents(home.homes), file, SUBAGENT)


async def is_told(home: Home, definitions: Definitions, source: Path, text: str) -> None:
    """Added for each scope, it is in what the model is told; removed, it is not."""
    agent = home.live.agent
    eager = (
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
        await home.live.run(**eager)
        told = [json.dumps(request.body) for request in home.live.model.requests]
        assert any(text in body for body in told), f"added for {scope}"
        [found] = definitions.list(agent)
        assert (found.scope, found.description, found.problem) == (scope, text, None)
        definitions.remove(agent, found.name)
        assert definitions.list(agent) == []
    home.live.script(home.live.answer(Say("Nothing to do.")))
    await home.live.run(**eager)
    assert not any(text in json.dumps(request.body) for request in home.live.model.requests)


@ALL_AGENTS
def test_home_credentials(home: Home) -> None:
    """They are found where the agent finds them, and nowhere else."""
    auth = needs(home.adapter.home().auth, "authentication", home)
    state = Auth(home.homes).check(home.live.agent)
    assert (state.status, state.method in {method.name for method in auth.methods}) == ("authenticated", True), state
    start = home.live.launch.environment
    bare = {name: value for name, value in start.items() if name in {"PATH", "TERM", "LANG"}}
    bare["HOME"] = str(home.live.home.with_name("nobody"))
    Path(bare["HOME"]).mkdir()
    nobody = Auth(InstallationResolver(environ=bare, project=home.live.workspace)).check(home.live.agent)
    assert nobody.status in {"unauthenticated", "unknown"}, nobody
    words = home.live.kit.installation.report_login
    if words is not None:
        judge = home.live.kit.installation.is_logged_in
        assert judge(*home.ask(*words)), home.ask(*words)
        assert not judge(*home.ask(*words, environment=bare)), home.ask(*words, environment=bare)


@ALL_AGENTS
def test_home_setup_commands(home: Home) -> None:
    """The agent knows them."""
    auth = needs(home.adapter.home().auth, "authentication", home)
    assert auth.steps
    for step in auth.steps:
        if step.command:
            code, printed = home.ask(*step.command, "--help")
            assert code == 0, printed
            assert " ".join(step.command) in printed, printed


@ALL_AGENTS
def test_home_plugins(home: Home, tmp_path: Path) -> None:
    """The agent's own commands are understood."""
    needs(home.adapter.home().plugins, "plugins", home)
    first, source, name = needs(home.live.kit.installation.write_plugin, "a plugin from a folder", home)(
        tmp_path / "plugin"
    )
    for words in first:
        code, printed = home.ask(*words)
        assert code == 0, printed
    plugins, agent = Plugins(home.homes), home.live.agent
    before = plugins.list(agent)
    assert name not in {plugin.name for plugin in before}
    assert plugins.install(agent, source, dry_run=True).answer is None
    assert plugins.list(agent) == before
    plugins.install(agent, source)
    assert {plugin.name for plugin in plugins.list(agent)} == {name, *(plugin.name for plugin in before)}
    plugins.uninstall(agent, name)
    assert plugins.list(agent) == before


@ALL_AGENTS
async def test_home_model(home: Home) -> None:
    """The one that we set is asked."""
    config = needs(home.adapter.home().config, "configuration", home)
    needs(config.model, "a model in its configuration", home)
    model = needs(home.live.kit.installation.model, "another model", home)
    configs = AgentConfigs(home.homes)
    configs.set_model(home.live.agent, model)
    said = configs.model(home.live.agent)
    assert said is not None
    assert said.value == model
    assert configs.validate(home.live.agent) == []
    words = home.live.kit.installation.print_model
    if words is not None:
        code, printed = home.ask(*words)
        assert (code, printed.strip()) == (0, model)
        return
    await home.live.run()
    bare = re.split("[/:]", model)[-1]
    told = [json.dumps(request.body.get("model", "")) + request.path for request in home.live.model.requests]
    assert any(bare in one for one in told), told


@CORE
@ALL_AGENTS
async def test_home_host_variables(home: Home) -> None:
    """What the agent runs can see who runs it."""
    variables = needs(home.adapter.home().host_variables or None, "a sign in the environment of what it runs", home)
    shown = " ".join(f"${{{name}:+{name}=set}}" for name in variables)
    home.live.script(home.live.answer(Shell(f"echo {shown} > signs.txt")), home.live.answer(Say("Done.")))
    await home.live.run()
    assert home.live.file("signs.txt").read_text("utf-8").split() == [f"{name}=set" for name in variables]
