"""Checks of files, schemas and functions; what takes forever or crashes does so in a process of its own."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent_mux.compare.checks.definitions import read_checks
from agent_mux.compare.checks.running import run_checks
from agent_mux.compare.records import CheckResult

FUNCTIONS = """
import os, time
def passes(context):
    assert context.checkout.is_dir() and context.arguments == {"limit": 3} and context.changed == ("a.txt",)
def objects(context): return "too slow"
def asserts(context): assert False, "not equal"
def raises(context): return 1 / 0
def exits(context): os._exit(0)
def hangs(context): time.sleep(600)
def returns(context): return 3
"""


def run_check(checkout: Path, table: dict[str, Any], **options: Any) -> CheckResult:
    [check] = read_checks([{"name": "it", **table}], where="compare.toml", directory=checkout.parent)
    [found] = run_checks([check], checkout, os.environ, **options)
    return found


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    directory = tmp_path / "checkout"
    directory.mkdir()
    (directory / "a.txt").write_text("one\ntwo\n")
    (directory / "a.json").write_text('{"n": 1}')
    (directory / "link").symlink_to("/etc/passwd")
    os.mkfifo(directory / "pipe")
    return directory


@pytest.mark.parametrize(
    ("table", "detail"),
    [
        ({"file": "a.txt", "exists": True}, ""),
        ({"file": "b.txt", "exists": True}, "b.txt cannot be read: No such file or directory"),
        ({"file": "b.txt", "absent": True}, ""),
        ({"file": "link", "absent": True}, "link exists"),
        ({"file": "a.txt", "contains": "two"}, ""),
        ({"file": "a.txt", "contains": "three"}, "a.txt does not contain 'three'"),
        ({"file": "a.txt", "matches": "^t.o$"}, ""),
        ({"file": "a.txt", "matches": "^w"}, "a.txt does not match '^w'"),
        ({"file": "a.txt", "unchanged": True}, "a.txt was changed"),
        ({"file": "a.json", "unchanged": True}, ""),
        ({"file": "link", "contains": "root"}, "link cannot be read: a symbolic link, which is not followed"),
        ({"file": "pipe", "contains": "x"}, "pipe cannot be read: no regular file"),
        ({"file": "a.json", "schema": {"required": ["n"]}}, ""),
        ({"file": "a.json", "schema": {"required": ["m"]}}, "'m' is a required property"),
        ({"file": "a.txt", "schema": {}}, "a.txt cannot be read as JSON"),
        ({"schema": {}}, "the run has no structured output"),
    ],
)
def test_assertion_about_a_file_or_value(checkout: Path, table: dict[str, Any], detail: str) -> None:
    found = run_check(checkout, table, changed=["a.txt"])
    assert found.status == ("fail" if detail else "pass")
    assert detail in found.detail


@pytest.mark.slow
def test_schema_validates_the_structured_output(checkout: Path) -> None:
    table = {"schema": {"properties": {"n": {"type": "integer"}}}}
    assert run_check(checkout, table, result={"structuredOutput": {"n": 1}}).status == "pass"
    found = run_check(checkout, table, result={"structuredOutput": {"n": "1"}})
    assert found.detail == "the structured output does not match the schema: at $.n: '1' is not of type 'integer'"


@pytest.mark.slow
def test_regular_expression_that_takes_forever_is_a_timeout(checkout: Path) -> None:
    (checkout / "a.txt").write_text("a" * 60)
    assert run_check(checkout, {"file": "a.txt", "matches": "(a+)+b", "timeout": 3}).status == "timeout"


@pytest.mark.parametrize(
    ("function", "status", "detail"),
    [
        ("passes", "pass", ""),
        ("objects", "fail", "too slow"),
        ("asserts", "fail", "not equal"),
        ("raises", "fail", "ZeroDivisionError: division by zero"),
        ("exits", "fail", "its process ended without a verdict: exit code 0"),
        ("hangs", "timeout", "it did not end within 1 s"),
        ("returns", "error", "the function returned int; return None, a bool or a str"),
        ("missing", "error", "own_checks:missing cannot be imported: AttributeError"),
    ],
)
def test_function_decides(checkout: Path, function: str, status: str, detail: str) -> None:
    (checkout.parent / "own_checks.py").write_text(FUNCTIONS)
    timeout = 1 if function == "hangs" else 60
    table = {"python": f"own_checks:{function}", "arguments": {"limit": 3}, "timeout": timeout}
    found = run_check(checkout, table, changed=["a.txt"])
    assert (found.status, detail in found.detail) == (status, True), found


def test_module_of_the_checkout_is_not_imported(checkout: Path) -> None:
    (checkout / "planted_checks.py").write_text("def verify(context): pass\n")
    assert run_check(checkout, {"python": "planted_checks:verify"}).status == "error"
