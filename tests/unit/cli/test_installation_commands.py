"""`amux config`, `mcp`, `auth`, `skill`, `agent`, `plugin`, `install`, `update`, `detect-host`, `capabilities`."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Amux, Done

SETTINGS = '{\n  "model": "opus",\n  "env": {"ANTHROPIC_API_KEY": "not-a-real-key-17"}\n}\n'
SKILL = "---\nname: dig\ndescription: Digs \x1b[31mholes\n---\n"
PROGRAM = '#!/bin/sh\necho \'[{"id": "demo@shop", "version": "1.0", "enabled": true}]\'\n'


@pytest.fixture
def home(amux: Amux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # it has a home of its own
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CI"):
        monkeypatch.delenv(name, raising=False)
    home, project = tmp_path / "home", tmp_path / "project"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text(SETTINGS, "utf-8")
    project.mkdir()
    monkeypatch.chdir(project)
    return home


def short(path: Path) -> str:
    """As people are shown it."""
    return f"~/{path.relative_to(Path(os.environ['HOME']))}"


def data(done: Done) -> Any:
    answer = json.loads(done.out)
    assert (done.code, done.err, answer["ok"]) == (0, "", True)
    return answer["data"]


# -- config


@pytest.mark.parametrize(
    ("field", "meant"), [("modle", "model"), ("permisions.allow", "permissions.allow"), ("env.MODEL", "")]
)
def test_field_that_looks_like_a_typing_error_is_set_with_a_warning(
    amux: Amux, home: Path, field: str, meant: str
) -> None:
    done = amux("config", "set", "claude", field, "y")
    assert done.code == 0
    warning = f"warning: {field} is no field of claude that agent-mux knows; did you mean {meant}? "
    assert (warning in done.err) is bool(meant)
    assert ("warning" in done.err) is bool(meant)
    assert ("`amux config unset" in done.err) is bool(meant)
    done = amux("config", "set", "claude", f"{field}2", "y", "--dry-run")
    assert "unset" not in done.err  # nothing was set


def test_unknown_field_is_set_with_a_warning(amux: Amux, home: Path) -> None:
    done = amux("config", "set", "claude", "x", "y")
    assert done.code == 0
    assert "warning: x is no field of claude that agent-mux knows; `amux config schema claude` lists them." in done.err
    assert "did you mean" not in done.err


def test_settings_are_shown_without_keys(amux: Amux, home: Path) -> None:
    done = amux("config", "get", "claude")
    assert "not-a-real-key" not in done.out + done.err
    assert json.loads(done.out) == {"model": "opus", "env": {"ANTHROPIC_API_KEY": "[hidden]"}}
    assert done.err.splitlines()[0] == "global: ~/.claude/settings.json"
    assert done.err.splitlines()[1].endswith("/project/.claude/settings.json (does not exist)")
    told = data(amux("config", "get", "claude", "--json"))
    assert told["values"]["env"] == {"ANTHROPIC_API_KEY": "[hidden]"}
    assert [one["exists"] for one in told["files"]] == [True, False, False]


def test_a_field_is_shown_with_its_file(amux: Amux, home: Path) -> None:
    assert amux("config", "get", "claude", "model") == (0, "opus\n", "global: ~/.claude/settings.json\n")
    assert amux("config", "get", "claude", "env.ANTHROPIC_API_KEY").out == "[hidden]\n"
    assert data(amux("config", "get", "claude", "model", "--json"))["value"] == "opus"


def test_a_field_is_set_and_unset(amux: Amux, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    done = amux("config", "set", "claude", "permissions.allow", '["Bash(ls:*)"]')
    assert done == (0, "", f"{short(path)}: changed\n")
    assert json.loads(path.read_bytes())["permissions"] == {"allow": ["Bash(ls:*)"]}
    assert (
        amux("config", "set", "claude", "permissions.allow", '["Bash(ls:*)"]').err == f"{short(path)}: nothing to do\n"
    )
    assert amux("config", "unset", "claude", "permissions.allow") == (0, "", f"{short(path)}: changed\n")
    assert path.read_text("utf-8") == SETTINGS


def test_a_dry_run_shows_the_difference_without_keys(amux: Amux, home: Path) -> None:
    done = amux("config", "set", "claude", "model", "sonnet", "--dry-run")
    assert (done.code, done.err) == (0, "~/.claude/settings.json: nothing written\n")
    assert '-  "model": "opus",' in done.out
    assert '+  "model": "sonnet",' in done.out
    assert "not-a-real-key" not in done.out
    told = data(amux("config", "unset", "claude", "env", "--dry-run", "--json"))
    assert (told["changed"], told["dryRun"]) == (True, True)
    assert "not-a-real-key" not in told["diff"]
    assert (home / ".claude" / "settings.json").read_text("utf-8") == SETTINGS


@pytest.mark.parametrize(
    ("words", "stdin", "value"),
    [
        (["x.a", "3"], b"", 3), (["x.a", "true"], b"", True), (["x.a", "null"], b"", None),
        (["x.a", "text"], b"", "text"),
        (["x.a", "3", "--text"], b"", "3"), (["model", "3"], b"", "3"), (["x.a", "-"], b"from stdin\n", "from stdin"),
        (["x.a", "-"], b'{"b": 1}', {"b": 1}),
    ],
)  # fmt: skip
def test_values(amux: Amux, home: Path, words: list[str], stdin: bytes, value: object) -> None:
    assert amux("config", "set", "claude", *words, "--scope", "local", stdin=stdin).code == 0
    found: Any = json.loads(Path(".claude/settings.local.json").read_bytes())
    for part in words[0].split("."):
        found = found[part]
    assert found == value


def test_files_are_checked(amux: Amux, home: Path) -> None:
    assert amux("config", "validate", "claude") == (0, "", "no problems found\n")
    (home / ".claude" / "settings.json").write_text('{"model": 3, "permissions": {"defaultMode": "x"}}', "utf-8")
    done = amux("config", "reload", "claude")
    assert done.code == 7
    assert "allowed: a string" in done.out
    rows = json.loads(amux("config", "validate", "claude", "--json").out)["data"]
    assert [row["field"] for row in rows] == ["model", "permissions.defaultMode"]


def test_a_schema(amux: Amux, home: Path) -> None:
    assert json.loads(amux("config", "schema", "claude").out) == data(amux("config", "schema", "claude", "--json"))


# -- mcp


def test_a_server_is_added_listed_and_removed(amux: Amux, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKET_TOKEN", "from-the-environment")
    path = home / ".claude.json"
    assert (
        amux("mcp", "add", "claude", "files", "--env", "TICKET_TOKEN", "--", "npx", "-y", "x").err
        == f"{short(path)}: changed\n"
    )
    added = [
        "mcp",
        "add",
        "claude",
        "web",
        "--url",
        "https://u:pass-word-1@h/mcp",
        "--header",
        "X=y",
        "--scope",
        "project",
    ]
    assert amux(*added).code == 0
    assert json.loads(path.read_bytes())["mcpServers"]["files"]["env"] == {"TICKET_TOKEN": "from-the-environment"}
    done = amux("mcp", "list", "claude")
    assert "from-the-environment" not in done.out
    assert "pass-word-1" not in done.out
    assert done.out.split()[:4] == ["name", "scope", "transport", "target"]
    files, web = data(amux("config", "mcp", "list", "claude", "--json"))
    assert (files["command"], files["args"], files["env"]) == ("npx", ["-y", "x"], {"TICKET_TOKEN": "[hidden]"})
    assert (web["scope"], web["transport"], web["headers"]) == ("project", "streamable-http", {"X": "[hidden]"})
    assert amux("mcp", "add", "claude", "web", "--scope", "project", "--", "other").code == 2
    assert amux("mcp", "add", "claude", "web", "--scope", "project", "--force", "--", "other").code == 0
    assert data(amux("mcp", "remove", "claude", "web", "--json"))["changed"]
    assert amux("mcp", "remove", "claude", "files").code == 0
    assert amux("mcp", "list", "claude") == (0, "", "claude has no MCP servers\n")


# -- auth


def test_credentials_are_detected_and_never_printed(amux: Amux, home: Path) -> None:
    done = amux("auth", "check", "claude")
    assert (done.code, done.err) == (0, "")
    assert "not-a-real-key" not in done.out
    [state] = data(amux("auth", "check", "claude", "--json"))
    assert state == {
        "agent": "claude", "status": "authenticated", "method": "api_key", "expiresAt": None, "problem": None,
        "where": f"{home}/.claude/settings.json (env.ANTHROPIC_API_KEY)",
    }  # fmt: skip
    (home / ".claude" / "settings.json").unlink()
    assert amux("auth", "check", "claude").code == 5
    assert amux("auth", "check").code == 0


def test_auth_setup_prints_the_steps(amux: Amux, home: Path) -> None:
    assert "    claude auth login\n" in amux("auth", "setup", "claude").out
    assert data(amux("auth", "setup", "claude", "--json"))[-1]["variable"] == "ANTHROPIC_API_KEY"


# -- skill, agent


def test_a_skill_is_added_listed_and_removed(amux: Amux, home: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "SKILL.md").write_text(SKILL.replace("\x1b[31m", ""), "utf-8")
    target = home / ".claude" / "skills" / "dig"
    assert amux("skill", "add", "claude", source, "--dry-run").err == f"would be added: {short(target)}\n"
    assert amux("skill", "add", "claude", source) == (0, "", f"added: {short(target)}\n")
    assert amux("skill", "add", "claude", source, "--force").err == f"replaced: {short(target)}\n"
    [found] = data(amux("skill", "list", "claude", "--json"))
    assert (found["name"], found["scope"], found["problem"]) == ("dig", "global", None)
    assert "Digs holes" in amux("skill", "list", "claude").out
    assert data(amux("skill", "remove", "claude", "dig", "--json"))["removed"]
    assert amux("skill", "list", "claude") == (0, "", "no skills\n")
    assert [row["exists"] for row in data(amux("skill", "where", "claude", "--json"))] == [True, False]


def test_control_characters_of_a_file_do_not_reach_the_terminal(amux: Amux, home: Path) -> None:
    path = home / ".claude" / "agents" / "x.md"
    path.parent.mkdir()
    path.write_text('---\nname: "x"\ndescription: "a\\e[31mb"\n---\n', "utf-8")
    done = amux("agent", "list", "claude")
    assert "\x1b" not in done.out
    assert "ab" in done.out


# -- plugin


def test_plugin_commands_call_the_agents_own_commands(
    amux: Amux, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "claude"
    program.write_text(PROGRAM, "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("AMUX_CLAUDE_EXECUTABLE", str(program))
    [found] = data(amux("plugin", "list", "claude", "--json"))
    assert (found["name"], found["version"], found["enabled"]) == ("demo@shop", "1.0", True)
    assert "demo@shop" in amux("plugin", "list", "claude").out
    assert amux("plugin", "install", "claude", "a b", "--dry-run").out == f"{program} plugin install 'a b'\n"
    assert "demo@shop" in amux("plugin", "install", "claude", "x").err
    assert data(amux("plugin", "uninstall", "claude", "x", "--json"))["command"][1:] == ["plugin", "uninstall", "x"]


# -- install, update, detect-host, capabilities


@pytest.mark.usefixtures("home")
def test_install_shows_the_command_and_asks(amux: Amux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    done = amux("install", "claude", "--dry-run")
    assert done.out == "npm install -g @anthropic-ai/claude-code\n"
    assert done.err == "required but not on PATH: npm\nnothing was run\n"
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(f"#!/bin/sh\necho '#!/bin/sh' > {npm.parent}/claude\necho 'echo 9.9.9' >> {npm.parent}/claude\n"
                   f"/bin/chmod +x {npm.parent}/claude\n", "utf-8")  # fmt: skip
    npm.chmod(0o755)
    assert amux("install", "claude").code == 2  # nobody can be asked
    assert not (npm.parent / "claude").exists()
    assert amux("install", "claude", "--yes").err == f"claude 9.9.9 is installed at {npm.parent}/claude\n"
    assert amux("update", "claude", "--dry-run").out == f"{npm.parent}/claude update\n"
    done = amux("update", "claude", "--yes", "--json")
    assert done.err == "9.9.9\n"  # what the program said
    assert json.loads(done.out)["data"]["version"] == "9.9.9"


def test_detect_host_reports_the_running_agent(amux: Amux, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    assert amux("detect-host") == (0, "", "no agent or CI system runs this process\n")
    monkeypatch.setenv("CLAUDECODE", "1")
    assert data(amux("detect-host", "--json")) == [{"kind": "agent", "name": "claude", "variable": "CLAUDECODE"}]


def test_capabilities_are_listed(amux: Amux, home: Path) -> None:
    told = data(amux("capabilities", "claude", "--json"))
    assert (told["canResume"], told["approvalModes"]) == (True, ["yolo", "prompt", "deny", "plan"])
    assert "text_delta" in told["emits"]
    assert "can resume" in amux("capabilities", "claude").out


# -- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_completion_script(amux: Amux, shell: str) -> None:
    done = amux("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert "_AMUX_COMPLETE" in done.out
    assert data(amux("completion", shell, "--json"))["script"] in done.out
