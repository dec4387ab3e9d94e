"""`amux hooks`: output, written files and errors."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli import bad_inputs_hooks
from tests.unit.cli.conftest import Amux

from agent_mux.sdk.hooks import CALLED_FROM_EVENTS

POLICY = '[[rules]]\ndecision = "deny"\ncommands = ["git push"]\nreason = "nothing leaves"\n'


@pytest.fixture(autouse=True)
def here(amux: Amux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "rules.toml").write_text(POLICY)
    monkeypatch.chdir(tmp_path / "work")
    for name in ("AGENT_MUX_PROJECT_DIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_CLI", CALLED_FROM_EVENTS):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def data(done: Any) -> Any:
    answer = json.loads(done.out)
    assert (done.code, done.err, answer["ok"]) == (0, "", True)
    return answer["data"]


def pushing(directory: Path) -> bytes:
    given = {"cwd": str(directory), "tool_name": "Bash", "tool_input": {"command": "git push"}}
    return json.dumps(given).encode()


def test_registering_and_listing(amux: Amux, here: Path) -> None:
    done = amux("hooks", "add", "guard", "builtin", "policy:rules.toml", "--type", "pre_tool_use")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"registered guard in {here}/config/hooks.json\n"
    amux("hooks", "add", "notes", "command", "-a", "claude", "--priority", "7", "--", "cat", "-n")
    listed = data(amux("hooks", "list", "--json"))
    assert [(one["id"], one["target"], one["priority"], one["counts"]) for one in listed] == [
        ("notes", ["cat", "-n"], 7, True),
        ("guard", f"policy:{here}/work/rules.toml", 100, True),
    ]
    shown = amux("hooks", "list").out.split()
    assert shown[:7] == ["id", "agent", "hookType", "handler", "target", "priority", "scope"]


def test_an_empty_list_of_hooks(amux: Amux) -> None:
    assert amux("hooks", "list") == (0, "", "no hooks are registered\n")


def test_disabling_enabling_and_removing_a_hook(amux: Amux) -> None:
    amux("hooks", "add", "a", "builtin", "log")
    assert "disabled a" in amux("hooks", "disable", "a").err
    assert data(amux("hooks", "list", "--json"))[0]["whyNot"] == "disabled"
    assert "enabled a" in amux("hooks", "enable", "a").err
    assert data(amux("hooks", "remove", "a", "--json"))["id"] == "a"
    assert data(amux("hooks", "list", "--json")) == []


def test_a_project_is_trusted(amux: Amux, here: Path) -> None:
    path = here / "work" / ".agent-mux" / "hooks.json"
    path.parent.mkdir()
    path.write_text('{"hooks": [{"id": "a", "handler": "builtin", "target": "log"}]}')
    assert "not trusted" in amux("hooks", "list").out
    assert amux("hooks", "trust").err == f"trusted {path} in its current form\n"
    assert data(amux("hooks", "list", "--json"))[0]["counts"]


def test_native_hooks_are_installed_and_uninstalled(amux: Amux, here: Path) -> None:
    path = here / "home" / ".claude" / "settings.json"
    dry = amux("hooks", "install", "claude", "--dry-run")
    assert (dry.code, dry.err, path.exists()) == (0, "~/.claude/settings.json: nothing written\n", False)
    assert "+" in dry.out
    assert amux("hooks", "install", "claude").err == "~/.claude/settings.json: changed\nclaude calls amux\n"
    assert "hooks claude handle pre_tool_use" in path.read_text()
    assert (
        amux("hooks", "install", "claude").err
        == "~/.claude/settings.json: nothing to do\nclaude calls amux (unchanged)\n"
    )
    (status,) = data(amux("hooks", "status", "claude", "--json"))
    assert (status["kind"], list(status["installed"])) == ("native", [str(path)])
    assert amux("hooks", "uninstall", "claude").err == "~/.claude/settings.json: changed\nclaude no longer calls amux\n"
    assert not path.exists()
    assert amux("hooks", "uninstall", "claude", "--dry-run") == (0, "", "~/.claude/settings.json: nothing to do\n")


def test_a_required_consent_is_printed(amux: Amux) -> None:
    assert "/hooks" in amux("hooks", "install", "codex").err
    assert data(amux("hooks", "install", "codex", "--json"))["changed"] is False


def test_the_status_of_all(amux: Amux) -> None:
    kinds = {one["agent"]: one["kind"] for one in data(amux("hooks", "status", "--json"))}
    assert (kinds["claude"], kinds["pi"]) == ("native", "virtual")


def test_the_status_names_files_below_the_home_directory(
    amux: Amux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    amux("hooks", "install", "claude")
    assert "~/.claude/settings.json" in amux("hooks", "status", "claude").out


@pytest.mark.parametrize("before", [[], ["--debug"]])
def test_a_hook_call_is_answered(amux: Amux, here: Path, before: list[str]) -> None:
    amux("hooks", "add", "guard", "builtin", "policy:rules.toml")
    done = amux(*before, "hooks", "claude", "handle", "pre_tool_use", stdin=pushing(here))
    assert (done.code, done.err) == (0, "")
    said = json.loads(done.out)["hookSpecificOutput"]
    assert (said["permissionDecision"], said["permissionDecisionReason"]) == ("deny", "nothing leaves")
    assert amux("hooks", "claude", "handle", "stop", stdin=pushing(here)) == (0, "", "")


def test_the_global_directory_can_be_chosen(amux: Amux, here: Path) -> None:
    other = here / "other"
    amux("hooks", "add", "guard", "builtin", "policy:rules.toml", "--config-dir", other)
    words = ("hooks", "claude", "handle", "pre_tool_use")
    assert amux(*words, stdin=pushing(here)).out == ""
    assert "deny" in amux(*words, "--config-dir", other, stdin=pushing(here)).out


def test_invalid_hook_input_is_answered(amux: Amux) -> None:
    amux("hooks", "add", "guard", "builtin", "policy:rules.toml")
    done = amux("hooks", "claude", "handle", "pre_tool_use", stdin=b"nonsense")
    assert done.code == 0
    assert json.loads(done.out)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert done.err == "warning: the input of the claude hook is not a JSON object\n"


@pytest.mark.parametrize(
    ("words", "code", "said"), [*bad_inputs_hooks.CASES, *bad_inputs_hooks.WHERE_SOMETHING_IS_REGISTERED]
)
def test_bad_input_is_one_line_and_writes_nothing(
    amux: Amux, here: Path, words: list[object], code: int, said: str
) -> None:
    (here / "config").mkdir()
    (here / "config" / "hooks.json").write_text(
        '{"hooks": [{"id": "b", "handler": "builtin", "target": "log:/dev/null"}]}'
    )
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    done = amux(*words)
    assert done.code == code
    if "--json" in words:
        error = json.loads(done.out)["error"]["message"]
        assert (said in error, done.err) == (True, "")
    else:
        assert done.out == ""
        first, *rest = done.err.splitlines()
        assert first.startswith("error: ")
        assert said in first
        assert all(line.startswith("hint: ") for line in rest)
    after = {path: path.read_bytes() for path in here.rglob("*") if path.is_file() and "locks" not in path.parts}
    assert after == before


@pytest.mark.parametrize("words", [["list"], ["add", "a", "builtin", "log"], ["remove", "a"], ["enable", "a"]])
def test_a_broken_file_is_named(amux: Amux, here: Path, words: list[str]) -> None:
    (here / "config").mkdir()
    (here / "config" / "hooks.json").write_text('{"hooks": [}')
    done = amux("hooks", *words)
    assert done.code == 7
    assert f"{here}/config/hooks.json cannot be used: line 1, column" in done.err
    assert (here / "config" / "hooks.json").read_text() == '{"hooks": [}'


def test_an_error_of_a_hook_call_is_a_json_object_with_json(amux: Amux) -> None:
    amux("hooks", "add", "a", "builtin", "log")
    done = amux("--json", "hooks", "clade", "handle", "stop")
    assert (done.code, done.err) == (3, "")
    assert json.loads(done.out)["error"]["code"] == "AGENT_NOT_FOUND"


def test_hook_help_shows_the_usage(amux: Amux) -> None:
    done = amux("hooks", "handle", "--help")
    assert done.code == 0
    assert "amux hooks AGENT handle TYPE" in done.out
