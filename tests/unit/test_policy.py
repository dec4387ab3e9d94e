"""Rules about what an agent may do."""

from pathlib import Path
from typing import Any

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.policy import Policy, Request, Rule, Ruling, read_policy

RM = Rule(decision="deny", commands=("rm",), reason="nothing is removed here")
GIT = Rule(decision="allow", commands=("git status", "git log"))


def ruled(*rules: Rule, default: Any = "ask", **request: Any) -> str:
    return Policy(rules=rules, default=default).rule_on(Request(**request)).decision


def test_where_no_rule_fits_the_default_holds() -> None:
    assert ruled() == "ask"
    assert ruled(default="deny") == "deny"
    assert ruled(RM, tool="Read") == "ask"


def test_the_strictest_rule_wins_wherever_it_stands() -> None:
    anything = Rule(decision="allow", tools=("*",))
    careful = Rule(decision="ask", risk=("high",))
    for rules in ((anything, careful, RM), (RM, careful, anything)):
        assert ruled(*rules, tool="Bash", command="ls") == "allow"
        assert ruled(*rules, tool="Bash", command="curl x", risk="high") == "ask"
        assert ruled(*rules, tool="Bash", command="rm x", risk="high") == "deny"


def test_a_rule_fits_when_everything_it_names_does() -> None:
    rule = Rule(decision="allow", tools=("Bash",), commands=("make",), risk=("low", "medium"))
    assert ruled(rule, tool="Bash", command="make test", risk="medium") == "allow"
    assert ruled(rule, tool="Bash", command="make test") == "ask"  # nobody judged the risk
    assert ruled(rule, tool="Other", command="make test") == "ask"
    assert ruled(rule, tool="Bash", command="make test", risk="high") == "ask"
    assert ruled(rule, tool="Bash") == "ask"


def test_tools_are_named_with_wildcards() -> None:
    rule = Rule(decision="allow", tools=("Read", "mcp__docs__*"))
    assert [ruled(rule, tool=tool) for tool in ("Read", "mcp__docs__find", "mcp__git__push", "read", None)] == [
        "allow", "allow", "ask", "ask", "ask",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command",
    ["git status", "git log -3", "git status && git log", "git status > /dev/null 2>&1", "git log | git status"],
)
def test_a_line_whose_every_command_is_allowed_is(command: str) -> None:
    assert ruled(GIT, command=command) == "allow"


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
def test_a_line_that_holds_more_is_not_allowed(command: str) -> None:
    assert ruled(GIT, command=command) == "ask"


@pytest.mark.parametrize("command", ["rm x", "sudo /bin/rm x", "git log $(rm x)", "bash -c 'rm x'", "ls; rm x"])
def test_a_denied_command_is_found_wherever_it_stands(command: str) -> None:
    ruling = Policy(rules=(GIT, RM)).rule_on(Request(command=command))
    assert ruling == Ruling("deny", "nothing is removed here")


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
def test_paths_are_globs_below_the_working_directory(pattern: str, path: str, fits: bool) -> None:
    rule = Rule(decision="allow", paths=(pattern,))
    assert rule.fits(Request(paths=(path,), cwd="/work")) is fits


def test_the_home_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/dev")
    rule = Rule(decision="deny", paths=("~/.ssh/**",))
    assert rule.fits(Request(paths=("/home/dev/.ssh/id",), cwd="/work"))


def test_every_path_has_to_be_allowed_and_one_is_enough_to_deny() -> None:
    asked = Request(paths=("src/a", "b"), cwd="/work")
    assert not Rule(decision="allow", paths=("src/**",)).fits(asked)
    assert Rule(decision="deny", paths=("src/**",)).fits(asked)
    assert not Rule(decision="allow", paths=("**",)).fits(Request(cwd="/work"))


def test_a_link_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "work" / "src").mkdir(parents=True)
    (tmp_path / "work" / "src" / "out").symlink_to(tmp_path)
    asked = Request(paths=("src/out/secret",), cwd=str(tmp_path / "work"))
    assert not Rule(decision="allow", paths=("src/**",)).fits(asked)
    assert Rule(decision="deny", paths=("src/**",)).fits(asked)


# -- files


def test_a_policy_is_read_from_a_file(tmp_path: Path) -> None:
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
    ("text", "said"),
    [
        ("default = ", "Invalid value"),
        ('default = "maybe"', "default"),
        ("surprise = 1", "surprise"),
        ('[[rules]]\ndecision = "allow"', "rule 1 has no conditions"),
        ('[[rules]]\ndecision = "allow"\ncommands = [" "]', "an empty command"),
        ('[[rules]]\ndecision = "allow"\nrisk = ["huge"]', "rules[0].risk"),
        ("timeout = -1", "timeout is -1"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(AgentMuxError) as wrong:
        read_policy(file)
    assert wrong.value.code == "CONFIG_ERROR"
    assert str(file) in str(wrong.value)
    assert said in str(wrong.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="No such file"):
        read_policy(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("command", "decision"),
    [("cat secret.txt", "deny"), ("cat --file=./secret.txt", "deny"), ("cat other.txt", "ask"), ("cat ../x", "ask")],
)
def test_a_path_that_is_denied_is_denied_in_a_command_too(command: str, decision: str) -> None:
    assert ruled(Rule(decision="deny", paths=("secret.txt",)), command=command) == decision


def test_a_path_that_is_allowed_allows_no_command() -> None:
    assert ruled(Rule(decision="allow", paths=("secret.txt",)), command="cat secret.txt") == "ask"
