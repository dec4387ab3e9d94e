"""Plugins, with a program in place of the agent's own command."""

import json
from pathlib import Path

import pytest
from tests.unit.sample_agent import AGENT, sample_resolver

from agent_mux import AgentMuxError, CapabilityError, ValidationError
from agent_mux.agents.plugins import Plugins
from agent_mux.sdk.installation import AgentInstallation, Plugin, PluginCommands

PROGRAM = """\
#!/bin/sh
printf '%s\\n' "$*" >> "$HOME/asked"
printf '%s\\n' "$QUIET" >> "$HOME/quiet"
case "$2" in
  list) cat "$HOME/list" ;;
  aside) echo "by the way" >&2; cat "$HOME/list" >&2 ;;
  broken) echo "first" >&2; echo "the shop is shut" >&2; exit 3 ;;
  *) echo "done $*" ;;
esac
"""


def _parse(printed: str) -> tuple[Plugin, ...]:
    return tuple(Plugin(name=one["name"], description=one.get("about")) for one in json.loads(printed))


def _update(name: str | None) -> tuple[str, ...]:
    if name is None:
        raise ValueError("the name of a plugin")
    return ("plugin", "update", name)


COMMANDS = PluginCommands(
    word="extension", list=("plugin", "list"), parse=_parse, install=lambda name: ("plugin", "add", name),
    uninstall=lambda name: ("plugin", "broken", name), update=_update, search=lambda _: ("plugin", "list"),
    parse_search=_parse, search_lists_all=True, environment={"QUIET": "yes"},
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "wombat"
    program.parent.mkdir()
    program.write_text(PROGRAM, "utf-8")
    program.chmod(0o755)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "list").write_text('[{"name": "a", "about": "Digs"}, {"name": "b"}]', "utf-8")
    return tmp_path / "home"


@pytest.fixture
def plugins(tmp_path: Path, home: Path) -> Plugins:
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    return Plugins(sample_resolver(tmp_path, AgentInstallation(plugins=COMMANDS), PATH=path))


def test_list_returns_what_the_agent_lists(plugins: Plugins, home: Path) -> None:
    assert [plugin.name for plugin in plugins.list("wom")] == ["a", "b"]
    assert (home / "quiet").read_text("utf-8") == "yes\n"
    assert [plugin.name for plugin in plugins.search(AGENT, "DIG")] == ["a"]


def test_list_can_be_on_stderr(tmp_path: Path, home: Path) -> None:
    def parse(printed: str) -> tuple[Plugin, ...]:
        return _parse(printed.removeprefix("by the way\n"))

    commands = PluginCommands(list=("plugin", "aside"), parse=parse, is_on_stderr=True)
    path = f"{home.parent / 'bin'}:/usr/bin:/bin"
    found = Plugins(sample_resolver(tmp_path, AgentInstallation(plugins=commands), PATH=path)).list(AGENT)
    assert [plugin.name for plugin in found] == ["a", "b"]


def test_changes_run_the_agents_command(plugins: Plugins, tmp_path: Path, home: Path) -> None:
    done = plugins.install(AGENT, "shop/tool", dry_run=True)
    assert (done.argv, done.answer) == ((str(tmp_path / "bin" / "wombat"), "plugin", "add", "shop/tool"), None)
    assert not (home / "asked").exists()
    done = plugins.install(AGENT, "shop/tool")
    assert done.answer is not None
    assert done.answer.stdout == "done plugin add shop/tool\n"
    assert plugins.update(AGENT, "a").answer is not None


def test_failed_command_is_reported_with_its_last_line(plugins: Plugins) -> None:
    with pytest.raises(
        AgentMuxError, match=r"`wombat plugin broken a` failed \(exit code 3\): the shop is shut"
    ) as bad:
        plugins.uninstall(AGENT, "a")
    assert bad.value.code == "PLUGIN_ERROR"


def test_unparsable_list_is_reported(plugins: Plugins, home: Path) -> None:
    (home / "list").write_text("<html>", "utf-8")
    with pytest.raises(AgentMuxError, match="cannot parse the plugin list of") as bad:
        plugins.list(AGENT)
    assert bad.value.code == "PLUGIN_ERROR"


@pytest.mark.parametrize("name", ["--force", "-y", "", " ", "a\nb", "x\0", "\x1b[2J"])
def test_flags_and_invalid_names_are_rejected(plugins: Plugins, home: Path, name: str) -> None:
    with pytest.raises(ValidationError):
        plugins.install(AGENT, name)
    assert not (home / "asked").exists()


def test_missing_command_raises_capability_error(tmp_path: Path, plugins: Plugins) -> None:
    with pytest.raises(ValidationError, match="the name of a plugin"):
        plugins.update(AGENT)
    nothing = Plugins(
        sample_resolver(
            tmp_path, AgentInstallation(plugins=PluginCommands(word="extension")), PATH=str(tmp_path / "bin")
        )
    )
    for call in (nothing.list, lambda agent: nothing.search(agent, "x"), lambda agent: nothing.install(agent, "x")):
        with pytest.raises(CapabilityError, match="extensions"):
            call(AGENT)
    with pytest.raises(CapabilityError, match="plugins"):
        Plugins(sample_resolver(tmp_path, AgentInstallation())).list(AGENT)


def test_missing_agent_is_reported(tmp_path: Path) -> None:
    gone = Plugins(sample_resolver(tmp_path, AgentInstallation(plugins=COMMANDS), PATH=str(tmp_path)))
    with pytest.raises(AgentMuxError) as bad:
        gone.list(AGENT)
    assert bad.value.code == "AGENT_NOT_INSTALLED"


def test_browse_lists_the_whole_catalog(plugins: Plugins, tmp_path: Path) -> None:
    assert [one.name for one in plugins.browse(AGENT)] == ["a", "b"]
    searched = PluginCommands(search=lambda text: ("plugin", text), parse_search=_parse)
    only_search = Plugins(sample_resolver(tmp_path, AgentInstallation(plugins=searched)))
    with pytest.raises(CapabilityError, match=f"can only be searched: `amux plugins search {AGENT} TEXT`"):
        only_search.browse(AGENT)
    neither = Plugins(sample_resolver(tmp_path, AgentInstallation(plugins=PluginCommands())))
    with pytest.raises(CapabilityError, match="install a plugin by name"):
        neither.browse(AGENT)


def test_info_combines_the_lists_and_suggests_names(plugins: Plugins, home: Path) -> None:
    (home / "list").write_text('[{"name": "digger@shop", "about": "Digs"}]', "utf-8")
    found = plugins.info(AGENT, "digger")
    assert found.installed == found.available == Plugin(name="digger@shop", description="Digs")
    with pytest.raises(AgentMuxError, match="no extension of wombat is named 'diger@shop'; did you mean 'digger@shop'"):
        plugins.info(AGENT, "diger@shop")
