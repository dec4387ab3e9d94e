"""Which changed files are restored before checks run, and which of them count as tampering."""

import pytest

from agent_mux.compare.checks.protected import CONFIGURATION, INFLUENCES, TESTS, Protection
from agent_mux.compare.records import PatchedFile
from agent_mux.errors import AgentMuxError


def modified(*paths: str) -> list[PatchedFile]:
    return [PatchedFile(path=path, change="modified") for path in paths]


def created(*paths: str) -> list[PatchedFile]:
    return [PatchedFile(path=path, change="created") for path in paths]


TEST_FILES = [
    "test_app.py", "pkg/test_app.py", "pkg/app_test.py", "tests/data/input.json", "tests", "src/test/java/AppTest.java",
    "web/app.test.ts", "web/app.spec.js", "web/app.test.mjs", "web/App.test.tsx", "web/__tests__/app.js",
    "web/__snapshots__/app.js.snap", "spec/app_spec.rb", "packages/a/lib/app_spec.rb", "app_test.go", "testdata/x",
    "AppTests.cs", "test/app.exs",
]  # fmt: skip
CONFIGURATION_FILES = [
    "conftest.py", "pkg/conftest.py", "pytest.ini", "tox.ini", "sitecustomize.py", "src/usercustomize.py", "a.pth",
    "jest.config.ts", "vitest.config.mts", ".mocharc.json", ".cargo/config.toml", "phpunit.xml.dist", ".rspec",
    "x.egg-info/entry_points.txt", "pytest/__init__.py", "_pytest/config.py",
]  # fmt: skip
ORDINARY_FILES = [
    "src/app.py", "README.md", "docs/spec/events.md", "src/contest.py", "latest/app.js", "testing/tools.py",
    "pyproject.toml", "setup.cfg", "package.json", "Makefile", "src/inspect.py", "lib/pytest/x.py", "attest_x.py",
]  # fmt: skip


@pytest.mark.parametrize("path", [*TEST_FILES, *CONFIGURATION_FILES])
def test_changed_and_deleted_files_of_tests_are_restored_and_reported(path: str) -> None:
    for change in ("modified", "deleted"):
        files = [PatchedFile(path=path, change=change)]  # type: ignore[arg-type]
        assert Protection().protected(files) == Protection().tampered(files) == (path,)


@pytest.mark.parametrize("path", TEST_FILES)
def test_new_tests_are_removed_and_no_tampering(path: str) -> None:
    assert Protection().protected(created(path)) == (path,)
    assert Protection().tampered(created(path)) == ()


@pytest.mark.parametrize("path", CONFIGURATION_FILES)
def test_new_configuration_of_tests_is_removed_and_reported(path: str) -> None:
    assert Protection().protected(created(path)) == Protection().tampered(created(path)) == (path,)


@pytest.mark.parametrize("path", ORDINARY_FILES)
def test_ordinary_files_are_not_protected(path: str) -> None:
    assert Protection().protected(modified(path)) == ()


def test_paths_are_sorted() -> None:
    assert Protection().protected(modified("tests/b.py", "src/a.py", "conftest.py")) == ("conftest.py", "tests/b.py")


def test_files_that_can_influence_checks_and_are_not_restored_are_listed() -> None:
    files = modified("src/app.py", "Makefile", "pyproject.toml", "tests/Makefile")
    assert Protection().unprotected_influences(files) == ("Makefile", "pyproject.toml")
    assert Protection(["/Makefile"]).unprotected_influences(files) == ("pyproject.toml",)


def test_added_patterns_protect_and_except_paths() -> None:
    protection = Protection(["golden/", "!tests/data/"])
    files = modified("golden/a.txt", "tests/data/a.txt", "tests/a.py")
    assert protection.protected(files) == ("golden/a.txt", "tests/a.py")
    assert protection.tampered(created("golden/b.txt")) == ("golden/b.txt",)


def test_nothing_is_protected_on_request() -> None:
    protection = Protection(["golden/"], is_enabled=False)
    files = modified("tests/a.py", "conftest.py", "golden/a")
    assert protection.protected(files) == protection.tampered(files) == ()


@pytest.mark.parametrize("pattern", ["", "  ", "# comment", "!"])
def test_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(AgentMuxError) as caught:
        Protection([pattern])
    assert caught.value.code == "VALIDATION_ERROR"
    assert repr(pattern) in caught.value.message


def test_no_pattern_is_listed_twice() -> None:
    patterns = [*TESTS, *CONFIGURATION, *INFLUENCES]
    assert len(patterns) == len(set(patterns))
