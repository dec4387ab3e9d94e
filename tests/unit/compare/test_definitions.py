"""Definitions of checks in a task file: what they mean, and one clear error for each mistake."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux.compare.checks.definitions import (
    CommandCheck,
    FileCheck,
    PythonCheck,
    SchemaCheck,
    read_checks,
    to_plain,
)
from agent_mux.errors import AgentMuxError

TABLES: list[dict[str, Any]] = [
    {"command": "pytest -q", "timeout": 30},
    {"name": "lint", "command": ["ruff", "check"], "exit_code": 1, "junit": "out/report.xml"},
    {"file": "a.txt", "exists": True, "contains": "x", "matches": "^y$"},
    {"schema": "answer.json", "file": "out.json"},
    {"python": "checks:verify", "arguments": {"limit": 3}},
]


def read(tmp_path: Path, *tables: Any) -> tuple[Any, ...]:
    return read_checks(tables, where="compare.toml", directory=tmp_path)


def test_each_kind_is_read_and_returns_from_plain_values(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(json.dumps({"type": "object"}))
    checks = read(tmp_path, *TABLES)
    assert checks == (
        CommandCheck(name="pytest -q", command=("pytest", "-q"), timeout=30),
        CommandCheck(name="lint", command=("ruff", "check"), exit_code=1, junit="out/report.xml"),
        FileCheck(name="a.txt: exists, contains, matches", file="a.txt", exists=True, contains="x", matches="^y$"),
        SchemaCheck(name="schema of out.json", schema={"type": "object"}, file="out.json"),
        PythonCheck(name="checks:verify", python="checks:verify", arguments={"limit": 3}, directory=str(tmp_path)),
    )
    plain = json.loads(json.dumps(to_plain(checks)))
    assert read_checks(plain, where="plan.json", directory=Path("/")) == checks


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("pytest", "check 1 is not a table"),
        ({"comand": "pytest"}, "check 1 states no kind: give one of the keys command, schema, python, file"),
        ({"command": "pytest", "timout": 3}, "check 1: unknown key 'timout'; did you mean 'timeout'?"),
        ({"command": ""}, "check 1: the command is empty; name a program"),
        ({"command": []}, "check 1: the command is empty; name a program"),
        ({"command": "a", "timeout": 0}, "check 1: timeout is 0; give seconds above 0"),
        ({"command": "a", "timeout": "x"}, "check 1: timeout: expected `float`, got `str`"),
        ({"command": "a", "junit": "/tmp/r.xml"}, "check 1: junit is '/tmp/r.xml'; give a path relative to"),
        ({"name": "n", "file": "../a", "exists": True}, "check 1 (n): file is '../a'; give a path relative to"),
        ({"file": "a"}, "check 1: nothing is asserted about a; add for example exists = true"),
        ({"file": "a", "absent": True, "contains": "x"}, "`absent` cannot be combined with `contains`"),
        ({"file": "a", "matches": "("}, "check 1: `matches` is not a regular expression: missing )"),
        ({"schema": "missing.json"}, "missing.json cannot be read: No such file or directory; correct the path"),
        ({"schema": {"type": "objekt"}}, "check 1: the schema is not a valid JSON Schema: at $.type"),
        ({"python": "verify"}, "check 1: no entry point 'verify' in the group agent_mux.checks"),
        ({"python": "a b:c"}, "check 1: 'a b:c' is not a function"),
    ],
)
def test_mistake_is_one_error_with_its_place(tmp_path: Path, table: Any, problem: str) -> None:
    with pytest.raises(AgentMuxError) as caught:
        read(tmp_path, table)
    assert caught.value.code == "VALIDATION_ERROR"
    assert caught.value.message.startswith("compare.toml: check 1")
    assert problem in caught.value.message


def test_names_are_unique(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="two checks have the name 'make'"):
        read(tmp_path, {"command": "make"}, {"command": ["make"]})
