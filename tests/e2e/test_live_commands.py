"""Every command of the installed `amux`, in a home where a real CLI has run."""

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
TESTED_ELSEWHERE = {
    ("run",), ("parse",), ("validate",), ("replay",), ("record",), ("demo",), ("schema",), ("version",), ("help",),
    ("sessions", "show"), ("sessions", "resume"), ("sessions", "fork"), ("sessions", "diff"), ("sessions", "watch"),
    ("sessions", "names"), ("sessions", "rename"), ("sessions", "delete"), ("sessions", "checkpoints"),
    ("sessions", "rewind"),
    ("install",), ("update",), ("uninstall",), ("hooks", "handle"), ("acp",), ("mcp-server",), ("serve",),
    ("runs", "list"), ("runs", "show"), ("runs", "text"), ("runs", "watch"), ("runs", "answer"), ("runs", "steer"),
    ("runs", "queue"), ("runs", "interrupt"), ("runs", "abort"), ("runs", "diff"), ("runs", "prune"),
    ("tokens", "create"), ("tokens", "list"), ("tokens", "rotate"), ("tokens", "revoke"),
    ("tokens", "allow-none"), ("audit",),
    ("compare", "start"), ("compare", "resume"), ("compare", "list"), ("compare", "show"), ("compare", "diff"),
    ("compare", "watch"), ("compare", "stop"), ("compare", "apply"), ("compare", "export"), ("compare", "delete"),
    ("worktrees", "list"), ("worktrees", "diff"), ("worktrees", "apply"), ("worktrees", "delete"),
}  # fmt: skip
"""Commands of other tests (test_live_cli, _stored, _acp_agent, _mcp_server, tests/process, tests/service), and commands
that need the network."""


class CommandRunner:
    """Runs commands, checks their exit codes, and records which were run."""

    def __init__(self, live: LiveAgent) -> None:
        self.live = live
        self.home = live.adapter.installation()
        self.executed: set[tuple[str, ...]] = set()

    def __call__(self, *words: str, has: bool = True, code: int = 0, stdin: str | None = None) -> Any:
        """Run a command with `--json`, and return its data.

        `has` is whether the agent has the feature. Without it the command must fail as unsupported; return None.
        """
        self.executed |= {words[:length] for length in range(1, len(words) + 1)}
        expected = code if has else CAPABILITY
        at = words.index("--") if "--" in words else len(words)
        printed = amux(self.live, *words[:at], "--json", *words[at:], stdin=stdin)
        self._check(words, printed, expected)
        answer = json.loads(printed.out)
        assert answer["ok"] is has, answer
        return answer["data"] if has else None

    def as_text(self, *words: str, has: bool = True, code: int = 0) -> CommandOutput:
        """Run a command without `--json`, and return its output."""
        printed = amux(self.live, *words)
        self._check(words, printed, code if has else CAPABILITY)
        assert "Traceback" not in printed.err
        return printed

    def _check(self, words: tuple[str, ...], printed: CommandOutput, code: int) -> None:
        assert printed.code == code, (words, printed)
        assert DUMMY_KEY not in printed.out + printed.err, words


def command_names(group: Any, *prefix: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command of a click group and its subgroups."""
    for name, inner in group.commands.items():
        if hasattr(inner, "commands"):
            yield from command_names(inner, *prefix, name)
        else:
            yield (*prefix, name)


@ALL_AGENTS
def test_commands(live: LiveAgent, tmp_path: Path) -> None:
    """Each command succeeds, or fails as unsupported by this agent; no output contains a key."""
    live.script(live.answer(Shell("echo needle-in-the-output")), live.answer(Say("All done.")))
    # Streamed, because the cheaper protocol of some agents stores no session.
    assert amux(live, "run", *live.agent_arguments, "find the needle", "--yolo", "--stream", "--tag", "hay").code == 0
    run = CommandRunner(live)
    agent, home = live.agent, run.home
    check_detection(run, agent)
    check_stored_sessions(run)
    check_agent_config(run, agent, home)
    check_mcp_servers(run, agent, home)
    check_definitions(run, agent, home, tmp_path)
    check_plugins(run, agent, home)
    check_models(run, agent)
    check_profiles(run, agent)
    check_hooks(run, agent, home)
    missing = {words for words in command_names(command()) if words not in run.executed | TESTED_ELSEWHERE}
    assert missing == set(), "commands without a test"


def check_detection(run: CommandRunner, agent: str) -> None:
    assert agent in {row["agent"] for row in run("adapters", "list")}
    for words in (("detect", agent), ("adapters", "detect", agent)):
        [found] = run(*words)
        assert found["installed"]
        assert found["version"].startswith(run.live.provisioned.version)
    run.as_text("adapters", "detect")
    about = run("adapters", "show", agent)
    assert (about["agent"], about["installed"]) == (agent, True)
    assert agent in run.as_text("adapters", "show", agent).out
    [own] = [row for row in run("doctor", agent) if row["check"] == agent]
    assert own["status"] == "ok"
    assert agent in run.as_text("doctor", agent).out
    assert run("capabilities", agent)["agent"] == agent
    run("detect-host")
    assert {one["agent"] for one in run("quota", agent)} <= {agent}
    run.as_text("quota", agent)
    run("completion", "bash")
    assert len(run("sessions", "list", "--agent", agent)) == 1


def check_stored_sessions(run: CommandRunner) -> None:
    [session] = run("sessions", "list")
    assert run("sessions", "search", "needle-in-the-output")[0]["session"]["id"] == session["id"]
    for form in ("json", "jsonl", "markdown", "html"):
        assert "needle" in run.as_text("sessions", "export", session["id"], "--format", form).out
    run.executed.add(("sessions", "export"))
    assert [one["id"] for one in run("sessions", "list", "--tag", "hay")] == [session["id"]]
    assert run("sessions", "tag", session["id"], "kept")["tags"] == ["hay", "kept"]
    for by in ("agent", "model", "day", "tag"):
        run("cost", "report", "--by", by)
        run.as_text("cost", "report", "--by", by)


def check_agent_config(run: CommandRunner, agent: str, home: AgentInstallation) -> None:
    config = home.config
    has = config is not None
    run("config", "get", agent, has=has)
    schema = run("config", "schema", agent, has=has)
    for verb in ("validate", "reload"):
        run("config", verb, agent, has=has)
    text = next(
        (
            name
            for name, field in (config.fields if config else {}).items()
            if not field.choices and field.kind == "string"
        ),
        "x",
    )
    before = settings_files(run.live.home)
    assert not has or schema["properties"]
    planned = run("config", "set", agent, text, "amux-was-here", "--dry-run", has=has)
    assert settings_files(run.live.home) == before
    run("config", "set", agent, text, "amux-was-here", has=has)
    if has:
        assert planned["changed"]
        assert run("config", "get", agent, text)["value"] == "amux-was-here"
    run("config", "unset", agent, text, has=has)


def check_mcp_servers(run: CommandRunner, agent: str, home: AgentInstallation) -> None:
    has = home.mcp is not None
    for group in (("mcp",), ("config", "mcp")):
        run(*group, "add", agent, "added", "--", "/bin/echo", "--flag", has=has)
        found = {one["name"]: one for one in run(*group, "list", agent, has=has) or ()}
        assert not has or (found["added"]["command"], found["added"]["args"]) == ("/bin/echo", ["--flag"])
        run(*group, "remove", agent, "added", has=has)
        assert "added" not in {one["name"] for one in run(*group, "list", agent, has=has) or ()}


def check_definitions(run: CommandRunner, agent: str, home: AgentInstallation, directory: Path) -> None:
    skill = directory / "singing"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: singing\ndescription: Sings\n---\nSing.\n", "utf-8")
    folders = home.subagents
    is_toml = folders is not None and folders.header == "toml"
    header = DEFINED_IN_TOML if is_toml else "---\nname: counter\ndescription: Counts\n---\nCount.\n"
    file = directory / f"counter{folders.file if folders else '.md'}"
    file.write_text(header, "utf-8")
    for group, source, name, known in (
        ("skills", skill, "singing", home.skills),
        ("subagents", file, "counter", folders),
    ):
        has = known is not None
        own = [folder.scope for folder in known.folders if not folder.is_shared] if known is not None else ["global"]
        run(group, "where", agent, has=has)
        assert (agent in {row["agent"] for row in run(group, "agents")}) is has
        run(group, "add", agent, str(source), "--scope", own[0], has=has)
        if has:
            assert name in {one["name"] for one in run(group, "list", agent)}
        run(group, "remove", agent, name, has=has)
        listed = run(group, "list", agent, has=has)
        assert not has or name not in {one["name"] for one in listed}
    if home.auth is not None:
        [state] = run("auth", "check", agent)
        assert state["status"] == "authenticated"
        assert run("auth", "setup", agent)
    run.executed |= {("auth", "check"), ("auth", "setup")}


def check_plugins(run: CommandRunner, agent: str, home: AgentInstallation) -> None:
    plugins = home.plugins
    run("plugins", "list", agent, has=plugins is not None and plugins.list is not None)
    for verb in ("install", "uninstall", "update"):
        has = plugins is not None and getattr(plugins, verb) is not None
        planned = run("plugins", verb, agent, "some-plugin@shop", "--dry-run", has=has)
        assert not has or planned["dryRun"]
    if plugins is None or plugins.search is None or plugins.search_lists_all:
        has = plugins is not None and plugins.search is not None
        found = run("plugins", "search", agent, "no-such-plugin-anywhere", has=has)
        assert not found
    can_browse = plugins is not None and plugins.search_lists_all
    if not can_browse:  # else the catalog is on the network
        run("plugins", "browse", agent, has=False)
    if plugins is None:
        run("plugins", "show", agent, "some-plugin", has=False)
    run.executed |= {("plugins", "search"), ("plugins", "browse"), ("plugins", "show")}


def check_models(run: CommandRunner, agent: str) -> None:
    adapter = AdapterRegistry().get(agent)
    models = run("models", "list", agent)
    run.as_text("models", "list", agent)
    if models:
        assert run("models", "show", agent, models[0]["modelId"])["modelId"] == models[0]["modelId"]
    run("models", "current", agent)
    run("models", "refresh", agent, has=adapter.model_listing is not None)
    config = adapter.installation().config
    has = config is not None and config.model is not None
    planned = run("models", "set", agent, "anthropic/claude-opus-4-6", "--dry-run", has=has)
    assert not has or planned["changed"]
    run.executed.add(("models", "show"))


def check_profiles(run: CommandRunner, agent: str) -> None:
    run("init", "--dry-run")
    run("init")
    run("profiles", "set", "careful", "approvalMode=deny", f"agent={agent}")
    assert [one["name"] for one in run("profiles", "list")] == ["careful"]
    run("profiles", "show", "careful")
    run("profiles", "use", "careful")
    run("profiles", "use", "--none")
    run("profiles", "delete", "careful")
    assert run("profiles", "list") == []


def check_hooks(run: CommandRunner, agent: str, home: AgentInstallation) -> None:
    run("hooks", "add", "notes", "builtin", "log", "--type", "pre_tool_use")
    run("hooks", "disable", "notes")
    run("hooks", "enable", "notes")
    run("hooks", "set", "notes", "--priority", "7")
    [found] = run("hooks", "list", "--agent", agent)
    assert (found["id"], found["enabled"], found["priority"]) == ("notes", True, 7)
    has = home.hooks is not None
    run("hooks", "install", agent, has=has)
    [state] = run("hooks", "status", agent)
    assert bool(state["installed"]) is has
    run("hooks", "uninstall", agent, has=has)
    run("hooks", "remove", "notes")
    (run.live.workspace / ".agent-mux" / "hooks.json").write_text('{"hooks": []}', "utf-8")
    run("hooks", "trust")


def settings_files(directory: Path) -> dict[str, bytes]:
    """Return the content of all settings files below a directory, by path."""
    settings = (path for path in directory.rglob("*") if path.suffix in {".json", ".toml", ".yaml", ".yml"})
    return {str(path): path.read_bytes() for path in settings if path.is_file()}


@ALL_AGENTS
def test_commands_exit_quietly_on_a_closed_pipe(live: LiveAgent) -> None:
    """A closed stdout ends the command with exit code 141 and without a message."""
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
