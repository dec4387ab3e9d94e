"""Approval policies: matching of rules, precedence, and policy files."""

from pathlib import Path
from typing import Any

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.policy import Policy, PolicyDecision, PolicyRequest, Rule, read_policy

RM = Rule(decision="deny", commands=("rm",), reason="nothing is removed here")
GIT = Rule(decision="allow", commands=("git status", "git log"))


def decision_of(*rules: Rule, default: Any = "ask", **request: Any) -> str:
    return Policy(rules=rules, default=default).rule_on(PolicyRequest(**request)).decision


def test_default_applies_when_no_rule_matches() -> None:
    assert decision_of() == "ask"
    assert decision_of(default="deny") == "deny"
    assert decision_of(RM, tool="Read") == "ask"


def test_strictest_matching_rule_wins_in_any_order() -> None:
    anything = Rule(decision="allow", tools=("*",))
    careful = Rule(decision="ask", risk=("high",))
    for rules in ((anything, careful, RM), (RM, careful, anything)):
        assert decision_of(*rules, tool="Bash", command="ls") == "allow"
        assert decision_of(*rules, tool="Bash", command="curl x", risk="high") == "ask"
        assert decision_of(*rules, tool="Bash", command="rm x", risk="high") == "deny"


def test_rule_matches_when_all_conditions_do() -> None:
    rule = Rule(decision="allow", tools=("Bash",), commands=("make",), risk=("low", "medium"))
    assert decision_of(rule, tool="Bash", command="make test", risk="medium") == "allow"
    assert decision_of(rule, tool="Bash", command="make test") == "ask"  # the risk is unknown
    assert decision_of(rule, tool="Other", command="make test") == "ask"
    assert decision_of(rule, tool="Bash", command="make test", risk="high") == "ask"
    assert decision_of(rule, tool="Bash") == "ask"


def test_tool_patterns_have_wildcards() -> None:
    rule = Rule(decision="allow", tools=("Read", "mcp__docs__*"))
    assert [decision_of(rule, tool=tool) for tool in ("Read", "mcp__docs__find", "mcp__git__push", "read", None)] == [
        "allow", "allow", "ask", "ask", "ask",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command",
    ["git status", "git log -3", "git status && git log", "git status > /dev/null 2>&1", "git log | git status"],
)
def test_line_of_allowed_commands_is_allowed(command: str) -> None:
    assert decision_of(GIT, command=command) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git status; rm x",
        "git log $(rm x)",
        "git log > out",
        "GIT_DIR=x git log",
        "git logs",
        "x git log",
        "",
    ],
)
def test_line_with_any_other_command_is_not_allowed(command: str) -> None:
    assert decision_of(GIT, command=command) == "ask"


@pytest.mark.parametrize("command", ["rm x", "sudo /bin/rm x", "git log $(rm x)", "bash -c 'rm x'", "ls; rm x"])
def test_denied_command_matches_anywhere_in_the_line(command: str) -> None:
    ruling = Policy(rules=(GIT, RM)).rule_on(PolicyRequest(command=command))
    assert ruling == PolicyDecision("deny", "nothing is removed here")


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/**", "/work/src/b.py", True),
        ("src/**", "other/b.py", False),
        ("src/**", "src/../secret", False),
        ("*.md", "docs/a.md", True),
        (".env", "deep/in/.env", True),
        ("src/*.py", "src/a/b.py", False),
        ("/etc/**", "/etc/passwd", True),
        ("/etc/**", "etc/passwd", False),
        ("**", "../outside", False),
        ("~/notes/**", "~", False),
    ],
)
def test_path_patterns_are_relative_to_the_working_directory(pattern: str, path: str, fits: bool) -> None:
    rule = Rule(decision="allow", paths=(pattern,))
    assert rule.fits(PolicyRequest(paths=(path,), cwd="/work")) is fits


def test_path_pattern_may_begin_with_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/dev")
    rule = Rule(decision="deny", paths=("~/.ssh/**",))
    assert rule.fits(PolicyRequest(paths=("/home/dev/.ssh/id",), cwd="/work"))


def test_all_paths_must_be_allowed_and_one_suffices_to_deny() -> None:
    request = PolicyRequest(paths=("src/a", "b"), cwd="/work")
    assert not Rule(decision="allow", paths=("src/**",)).fits(request)
    assert Rule(decision="deny", paths=("src/**",)).fits(request)
    assert not Rule(decision="allow", paths=("**",)).fits(PolicyRequest(cwd="/work"))


def test_symbolic_links_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "work" / "src").mkdir(parents=True)
    (tmp_path / "work" / "src" / "out").symlink_to(tmp_path)
    request = PolicyRequest(paths=("src/out/secret",), cwd=str(tmp_path / "work"))
    assert not Rule(decision="allow", paths=("src/**",)).fits(request)
    assert Rule(decision="deny", paths=("src/**",)).fits(request)


# -- files


def test_policy_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(
        'default = "deny"\ntimeout = 5\non_timeout = "allow"\n'
        '[[rules]]\ndecision = "allow"\ntools = ["Read"]\n[[rules]]\ndecision = "ask"\nrisk = ["high"]\n'
    )
    assert read_policy(file) == Policy(
        rules=(Rule(decision="allow", tools=("Read",)), Rule(decision="ask", risk=("high",))),
        default="deny",
        timeout=5.0,
        on_timeout="allow",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("default = ", "Invalid value"),
        ('default = "maybe"', "default"),
        ("surprise = 1", "surprise"),
        ('[[rules]]\ndecision = "allow"', "rule 1 has no conditions"),
        ('[[rules]]\ndecision = "allow"\ncommands = [" "]', "policy.rules[0].commands[0]: got ' '"),
        ('[[rules]]\ndecision = "allow"\nrisk = ["huge"]', "rules[0].risk"),
        ("timeout = -1", "policy.timeout: got -1"),
    ],
)
def test_invalid_file_raises_with_path_and_reason(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(AgentMuxError) as wrong:
        read_policy(file)
    assert wrong.value.code == "CONFIG_ERROR"
    assert str(file) in str(wrong.value)
    assert reason in str(wrong.value)


def test_unknown_field_in_a_policy_names_the_known_ones(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text("[[steps]]\n")
    with pytest.raises(
        AgentMuxError, match=r"policy.steps: got .*; allowed: a field of Policy; its fields are rules, default"
    ):
        read_policy(file)


def test_missing_file_raises(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="No such file"):
        read_policy(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("command", "decision"),
    [("cat secret.txt", "deny"), ("cat --file=./secret.txt", "deny"), ("cat other.txt", "ask"), ("cat ../x", "ask")],
)
def test_denied_path_is_also_denied_in_commands(command: str, decision: str) -> None:
    assert decision_of(Rule(decision="deny", paths=("secret.txt",)), command=command) == decision


def test_allowed_path_allows_no_command() -> None:
    assert decision_of(Rule(decision="allow", paths=("secret.txt",)), command="cat secret.txt") == "ask"
