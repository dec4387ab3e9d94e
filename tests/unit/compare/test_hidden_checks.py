"""Hidden checks are copied over a checkout and never to a place outside of it."""

from pathlib import Path

import pytest

from agent_mux.compare.checks.hidden import copy_hidden_checks, require_hidden_checks
from agent_mux.errors import AgentMuxError


@pytest.fixture
def hidden(tmp_path: Path) -> Path:
    directory = tmp_path / "hidden"
    (directory / "tests" / "deep").mkdir(parents=True)
    (directory / "tests" / "test_a.py").write_text("hidden a\n")
    (directory / "tests" / "deep" / "run.sh").write_text("hidden run\n")
    (directory / "tests" / "deep" / "run.sh").chmod(0o555)
    return directory


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    directory = tmp_path / "checkout"
    directory.mkdir()
    return directory


def test_files_replace_those_of_the_checkout(hidden: Path, checkout: Path) -> None:
    (checkout / "tests").mkdir()
    (checkout / "tests" / "test_a.py").write_text("of the agent\n")
    (checkout / "tests" / "test_b.py").write_text("stays\n")
    assert copy_hidden_checks(hidden, checkout) == ("tests/deep/run.sh", "tests/test_a.py")
    assert (checkout / "tests" / "test_a.py").read_text() == "hidden a\n"
    assert (checkout / "tests" / "test_b.py").read_text() == "stays\n"
    assert (checkout / "tests" / "deep" / "run.sh").stat().st_mode & 0o111


def test_symbolic_links_in_the_checkout_do_not_redirect_the_copy(hidden: Path, checkout: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "target").write_text("outside\n")
    (checkout / "tests").symlink_to(outside)
    copy_hidden_checks(hidden, checkout)
    assert sorted(path.name for path in outside.rglob("*")) == ["deep", "target"]
    (checkout / "tests" / "test_a.py").unlink()
    (checkout / "tests" / "test_a.py").symlink_to(outside / "target")
    copy_hidden_checks(hidden, checkout)
    assert (outside / "target").read_text() == "outside\n"
    assert (checkout / "tests" / "test_a.py").read_text() == "hidden a\n"


def test_files_and_directories_in_the_way_are_replaced(hidden: Path, checkout: Path) -> None:
    (checkout / "tests").write_text("a file\n")
    copy_hidden_checks(hidden, checkout)
    (checkout / "tests" / "test_a.py").unlink()
    (checkout / "tests" / "test_a.py" / "sub").mkdir(parents=True)
    copy_hidden_checks(hidden, checkout)
    assert (checkout / "tests" / "test_a.py").read_text() == "hidden a\n"


def test_directory_that_agents_could_read_is_refused(hidden: Path, tmp_path: Path, checkout: Path) -> None:
    assert require_hidden_checks(hidden, checkout) == hidden
    for directory, source, problem in (
        (hidden, tmp_path, "is inside"),
        (tmp_path / "missing", checkout, "is not a directory"),
        (checkout, hidden, "has no files"),
    ):
        with pytest.raises(AgentMuxError, match=problem) as caught:
            require_hidden_checks(directory, source)
        assert caught.value.code == "VALIDATION_ERROR"


def test_links_to_directories_are_refused(hidden: Path, checkout: Path, tmp_path: Path) -> None:
    (hidden / "link").symlink_to(tmp_path)
    with pytest.raises(AgentMuxError, match="is a symbolic link to a directory"):
        copy_hidden_checks(hidden, checkout)
