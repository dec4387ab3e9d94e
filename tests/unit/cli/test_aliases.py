"""Command lines of the TypeScript agent-mux run our commands, or are refused with the next step."""

import re
import shlex
from pathlib import Path

import pytest
from tests.unit.cli.command_lines import check_call
from tests.unit.cli.conftest import Amux

from agent_mux import AgentMuxError
from agent_mux.cli.aliases import translate

PAGE = Path(__file__).parents[3] / "docs/reference/typescript-differences.md"
ROW = re.compile(r"^\| `amux ([^`]+)` \| `amux ([^`]+)` \|", re.MULTILINE)
REFUSED = re.compile(r"^\| `amux ([^`]+)` \| refused", re.MULTILINE)


def names_agent(word: str) -> bool:
    return word in {"claude", "codex"}


def ours(line: str) -> list[str]:
    return translate(shlex.split(line), names_agent)


@pytest.mark.parametrize(("theirs", "expected"), ROW.findall(PAGE.read_text("utf-8")))
def test_each_row_of_the_page_translates_to_a_valid_command(theirs: str, expected: str) -> None:
    assert ours(theirs) == shlex.split(expected)
    check_call(shlex.split(expected))


@pytest.mark.parametrize("line", REFUSED.findall(PAGE.read_text("utf-8")))
def test_commands_without_a_counterpart_name_the_next_step(line: str) -> None:
    with pytest.raises(AgentMuxError, match=r"amux has no command '.*'; .*`|amux has no command '.*'; .*/v1/health"):
        ours(line)


@pytest.mark.parametrize(
    "line",
    [
        "run claude 'gateway serve'",
        "sessions show claude",
        "sessions search claude",
        "sessions list --agent claude",
        "hooks claude handle pre_tool_use",
        "hooks list",
        "hooks set x --enabled",
        "mcp add claude files -- npx --global",
        "--json",
        "",
        "hooks",
    ],
)
def test_own_command_lines_are_unchanged(line: str) -> None:
    assert ours(line) == shlex.split(line)


OLD_WORDS = {
    "worktree list": "worktrees list",
    "worktree clean 01M8": "worktrees delete 01M8",
    "token create ci --scope run": "tokens create ci --scope run",
    "tokens revoke ci": "tokens revoke ci",
    "skill add codex x --project": "skills add codex x --scope project",
    "agent remove claude reviewer": "subagents remove claude reviewer",
    "plugin info claude demo": "plugins show claude demo",
    "plugins marketplace claude": "plugins browse claude",
    "models get claude opus": "models show claude opus",
    "adapters info claude": "adapters show claude",
    "compare remove 01K0": "compare delete 01K0",
    "profiles apply review": "profiles use review",
    "sessions tail 1c2b": "sessions watch 1c2b",
    "sessions tail claude": "sessions watch --agent claude",
    "sessions names --forget review": "sessions names --remove review",
    "help worktree clean": "help worktrees delete",
    "help token": "help tokens",
}
"""Command lines with the words of earlier releases, and what they mean now."""


@pytest.mark.parametrize(("old", "new"), OLD_WORDS.items())
def test_old_words_still_work(amux: Amux, old: str, new: str) -> None:
    assert ours(old) == shlex.split(new)
    assert ours(new) == shlex.split(new)
    check_call(shlex.split(new))
    words = shlex.split(old)
    if words[0] != "help":
        done = amux(*words[:2], "--help")
        assert (done.code, done.err) == (0, "")
        assert f"amux {' '.join(shlex.split(new)[:2])}" in done.out


def test_help_shows_no_old_words(amux: Amux) -> None:
    shown = amux("--help").out
    groups = {line.split()[0] for line in shown.splitlines() if re.match(r"  [a-z]", line)}
    assert {"worktrees", "tokens", "skills", "subagents", "plugins"} <= groups
    assert not {"worktree", "token", "skill", "agent", "plugin"} & groups


def test_options_before_the_command_are_kept() -> None:
    assert ours("--json --config-dir gateway gateway tokens list") == shlex.split(
        "--json --config-dir gateway tokens list"
    )


def test_wrong_lifetime_is_reported() -> None:
    with pytest.raises(AgentMuxError, match="--ttl-ms expects milliseconds, got 'soon'"):
        ours("gateway tokens create --ttl-ms soon")
    with pytest.raises(AgentMuxError, match="--target is missing"):
        ours("hooks claude add PreToolUse --handler builtin")


def test_alias_runs_the_command(amux: Amux) -> None:
    assert amux("models", "info", "claude", "opus").out == amux("models", "get", "claude", "opus").out
    assert amux("plugins", "marketplace", "pi").code == 6
    done = amux("remote", "install", "host")
    assert (done.code, done.out) == (2, "")
    assert "amux serve" in done.err


@pytest.mark.parametrize(("text", "seconds"), [("60000ms", 60), ("90s", 90), ("2m", 120), ("1.5h", 5400), ("7", 7)])
def test_durations_accept_units(text: str, seconds: float) -> None:
    from agent_mux.cli.options import seconds as parse

    assert parse(text) == seconds


def test_duration_with_an_unknown_unit_is_refused(amux: Amux) -> None:
    done = amux("run", "claude", "hi", "--timeout", "9x")
    assert done.code == 2
    assert "'9x' is not a duration; give seconds, or a number and ms, s, m, h or d" in done.err
