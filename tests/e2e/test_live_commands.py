"""Every command, as a user types it, where a real CLI has run: the installed `amux`, in a home of its own."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.harness import LiveAgent
from tests.e2e.terminal import AMUX, CommandOutput, amux, environment
from tests.e2e.ways import ALL_AGENTS

from agent_mux.cli.app import command
from agent_mux.sdk.installation import AgentInstallation
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.live import DUMMY_KEY, Say, Shell

CAPABILITY = 6
DEFINED_IN_TOML = 'name = "counter"\ndescription = "Counts"\ndeveloper_instructions = "Count."\n'
ELSEWHERE = {
    ("run",), ("parse",), ("validate",), ("replay",), ("record",), ("demo",), ("schema",), ("version",), ("help",),
    ("sessions", "show"), ("sessions", "resume"), ("sessions", "fork"), ("sessions", "diff"), ("sessions", "tail"),
    ("install",), ("update",), ("hooks", "handle"), ("acp",), ("mcp-server",), ("serve",), ("token", "create"),
    ("token", "list"), ("token", "rotate"), ("token", "revoke"),
}  # fmt: skip
"""What other tests drive (test_live_cli, _stored, _acp_agent, _mcp_server, tests/process, tests/service), or what
would fetch something."""


class Commands:
    """What was typed, and what it came to."""

    def __init__(self, live: LiveAgent) -> None:
        self.live = live
        self.home = live.adapter.home()
        self.typed: set[tuple[str, ...]] = set()

    def __call__(self, *words: str, has: bool = True, code: int = 0, stdin: str | None = None) -> Any:
        """Type it, with `--json` and without. `has`: the agent can do that; else it says that it cannot."""
        self.typed |= {words[:length] for length in range(1, len(words) + 1)}
        expected = code if has else CAPABILITY
        at = words.index("--") if "--" in words else len(words)
        for_programs = amux(self.live, *words[:at], "--json", *words[at:], stdin=stdin)
        self._check(words, for_programs, expected)
        answer = json.loads(for_programs.out)
        assert answer["ok"] is has, answer
        return answer["data"] if has else None

    def for_people(self, *words: str, has: bool = True, code: int = 0) -> CommandOutput:
        """Type it without `--json`."""
        printed = amux(self.live, *words)
        self._check(words, printed, code if has else CAPABILITY)
        assert "Traceback" not in printed.err
        return printed

    def _check(self, words: tuple[str, ...], printed: CommandOutput, code: int) -> None:
        assert printed.code == code, (words, printed)
        assert DUMMY_KEY not in printed.out + printed.err, words


def commands(group: Any, *way: str) -> Iterator[tuple[str, ...]]:
    for name, inner in group.commands.items():
        if hasattr(inner, "commands"):
            yield from commands(inner, *way, name)
        else:
            yield (*way, name)


@ALL_AGENTS
def test_commands(live: LiveAgent, tmp_path: Path) -> None:
    """Each does what it is for, or says that this agent has no such thing; keys are never shown."""
    live.script(live.answer(Shell("echo needle-in-the-output")), live.answer(Say("All done.")))
    # Streamed: where an agent has a cheaper way to answer, that leaves no session.
    assert amux(live, "run", *live.agent_arguments, "find the needle", "--yolo", "--stream", "--tag", "hay").code == 0
    type_in = Commands(live)
    agent, home = live.agent, type_in.home
    looks_around(type_in, agent)
    reads_what_is_stored(type_in)
    changes_settings(type_in, agent, home)
    changes_servers(type_in, agent, home)
    changes_definitions(type_in, agent, home, tmp_path)
    asks_for_plugins(type_in, agent, home)
    knows_models(type_in, agent)
    keeps_profiles(type_in, agent)
    keeps_hooks(type_in, agent, home)
    missing = {way for way in commands(command()) if way not in type_in.typed | ELSEWHERE}
    assert missing == set(), "not exercised"


def looks_around(type_in: Commands, agent: str) -> None:
    assert agent in {row["agent"] for row in type_in("adapters", "list")}
    for words in (("detect", agent), ("adapters", "detect", agent)):
        [found] = type_in(*words)
        assert found["installed"]
        assert found["version"].startswith(type_in.live.provisioned.version)
    type_in.for_people("adapters", "detect")
    [own] = [row for row in type_in("doctor", agent) if row["check"] == agent]
    assert own["status"] == "ok"
    assert agent in type_in.for_people("doctor", agent).out
    assert type_in("capabilities", agent)["agent"] == agent
    type_in("detect-host")
    type_in("completion", "bash")
    assert len(type_in("sessions", "list", "--agent", agent)) == 1


def reads_what_is_stored(type_in: Commands) -> None:
    [session] = type_in("sessions", "list")
    assert type_in("sessions", "search", "needle-in-the-output")[0]["session"]["id"] == session["id"]
    for form in ("json", "jsonl", "markdown", "html"):
        assert "needle" in type_in.for_people("sessions", "export", session["id"], "--format", form).out
    type_in.typed.add(("sessions", "export"))
    assert [one["id"] for one in type_in("sessions", "list", "--tag", "hay")] == [session["id"]]
    for by in ("agent", "model", "day", "tag"):
        type_in("cost", "report", "--by", by)
        type_in.for_people("cost", "report", "--by", by)


def changes_settings(type_in: Commands, agent: str, home: AgentInstallation) -> None:
    config = home.config
    has = config is not None
    type_in("config", "get", agent, has=has)
    schema = type_in("config", "schema", agent, has=has)
    for verb in ("validate", "reload"):
        type_in("config", verb, agent, has=has)
    text = next(
        (
            name
            for name, field in (config.fields if config else {}).items()
            if not field.choices and field.kind == "string"
        ),
        "x",
    )
    before = everything(type_in.live.home)
    assert not has or schema["properties"]
    planned = type_in("config", "set", agent, text, "amux-was-here", "--dry-run", has=has)
    assert everything(type_in.live.home) == before
    type_in("config", "set", agent, text, "amux-was-here", has=has)
    if has:
        assert planned["changed"]
        assert type_in("config", "get", agent, text)["value"] == "amux-was-here"
    type_in("config", "unset", agent, text, has=has)


def changes_servers(type_in: Commands, agent: str, home: AgentInstallation) -> None:
    has = home.mcp is not None
    for group in (("mcp",), ("config", "mcp")):
        type_in(*group, "add", agent, "added", "--", "/bin/echo", "--flag", has=has)
        found = {one["name"]: one for one in type_in(*group, "list", agent, has=has) or ()}
        assert not has or (found["added"]["command"], found["added"]["args"]) == ("/bin/echo", ["--flag"])
        type_in(*group, "remove", agent, "added", has=has)
        assert "added" not in {one["name"] for one in type_in(*group, "list", agent, has=has) or ()}


def changes_definitions(type_in: Commands, agent: str, home: AgentInstallation, directory: Path) -> None:
    skill = directory / "singing"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: singing\ndescription: Sings\n---\nSing.\n", "utf-8")
    folders = home.subagents
    is_toml = folders is not None and folders.header == "toml"
    header = DEFINED_IN_TOML if is_toml else "---\nname: counter\ndescription: Counts\n---\nCount.\n"
    file = directory / f"counter{folders.file if folders else '.md'}"
    file.write_text(header, "utf-8")
    for group, source, name, known in (("skill", skill, "singing", home.skills), ("agent", file, "counter", folders)):
        has = known is not None
        own = [folder.scope for folder in known.folders if not folder.is_shared] if known is not None else ["global"]
        type_in(group, "where", agent, has=has)
        type_in(group, "add", agent, str(source), "--scope", own[0], has=has)
        if has:
            assert name in {one["name"] for one in type_in(group, "list", agent)}
        type_in(group, "remove", agent, name, has=has)
        listed = type_in(group, "list", agent, has=has)
        assert not has or name not in {one["name"] for one in listed}
    if home.auth is not None:
        [state] = type_in("auth", "check", agent)
        assert state["status"] == "authenticated"
        assert type_in("auth", "setup", agent)
    type_in.typed |= {("auth", "check"), ("auth", "setup")}


def asks_for_plugins(type_in: Commands, agent: str, home: AgentInstallation) -> None:
    plugins = home.plugins
    type_in("plugin", "list", agent, has=plugins is not None and plugins.list is not None)
    for verb in ("install", "uninstall", "update"):
        has = plugins is not None and getattr(plugins, verb) is not None
        planned = type_in("plugin", verb, agent, "some-plugin@shop", "--dry-run", has=has)
        assert not has or planned["dryRun"]
    if plugins is None or plugins.search is None or plugins.search_lists_all:
        has = plugins is not None and plugins.search is not None
        found = type_in("plugin", "search", agent, "no-such-plugin-anywhere", has=has)
        assert not found
    type_in.typed.add(("plugin", "search"))


def knows_models(type_in: Commands, agent: str) -> None:
    adapter = AdapterRegistry().get(agent)
    models = type_in("models", "list", agent)
    type_in.for_people("models", "list", agent)
    if models:
        assert type_in("models", "get", agent, models[0]["modelId"])["modelId"] == models[0]["modelId"]
    type_in("models", "current", agent)
    type_in("models", "refresh", agent, has=adapter.model_listing is not None)
    config = adapter.home().config
    has = config is not None and config.model is not None
    planned = type_in("models", "set", agent, "anthropic/claude-opus-4-6", "--dry-run", has=has)
    assert not has or planned["changed"]
    type_in.typed.add(("models", "get"))


def keeps_profiles(type_in: Commands, agent: str) -> None:
    type_in("init", "--dry-run")
    type_in("init")
    type_in("profiles", "set", "careful", "approvalMode=deny", f"agent={agent}")
    assert [one["name"] for one in type_in("profiles", "list")] == ["careful"]
    type_in("profiles", "show", "careful")
    type_in("profiles", "apply", "careful")
    type_in("profiles", "apply", "--none")
    type_in("profiles", "delete", "careful")
    assert type_in("profiles", "list") == []


def keeps_hooks(type_in: Commands, agent: str, home: AgentInstallation) -> None:
    type_in("hooks", "add", "notes", "builtin", "log", "--type", "pre_tool_use")
    type_in("hooks", "disable", "notes")
    type_in("hooks", "enable", "notes")
    [found] = type_in("hooks", "list")
    assert (found["id"], found["enabled"]) == ("notes", True)
    has = home.hooks is not None
    type_in("hooks", "install", agent, has=has)
    [state] = type_in("hooks", "status", agent)
    assert bool(state["installed"]) is has
    type_in("hooks", "uninstall", agent, has=has)
    type_in("hooks", "remove", "notes")
    (type_in.live.workspace / ".agent-mux" / "hooks.json").write_text('{"hooks": []}', "utf-8")
    type_in("hooks", "trust")


def everything(directory: Path) -> dict[str, bytes]:
    settings = (path for path in directory.rglob("*") if path.suffix in {".json", ".toml", ".yaml", ".yml"})
    return {str(path): path.read_bytes() for path in settings if path.is_file()}


@ALL_AGENTS
def test_commands_exit_quietly_on_a_closed_pipe(live: LiveAgent) -> None:
    """A reader that goes away ends the command, quietly."""
    live.script(live.answer(Say("All done.")))
    assert amux(live, "run", *live.agent_arguments, "hello", "--yolo").code == 0
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [AMUX, "adapters", "list"], env=environment(live), cwd=live.workspace, stdin=subprocess.DEVNULL,
            stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
