"""The repository of `amux demo`: it has a failing test and is isolated from the user's settings."""

from pathlib import Path

import pytest

from agent_mux.cli.demo_repository import FILES, DemoRepository, make_repository

BUG, MENDED = "return a - b", "return a + b"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


def mend(made: DemoRepository) -> None:
    path = made.path / "calculator.py"
    path.write_text(path.read_text("utf-8").replace(BUG, MENDED), "utf-8")


def test_the_test_fails_until_the_bug_is_fixed() -> None:
    with make_repository(keep=False) as made:
        before = made.test()
        mend(made)
        after = made.test()
    assert (before.exit_code, "FAILED (failures=1)" in before.output) == (1, True)
    assert (after.exit_code, after.output.endswith("\nOK\n")) == (0, True)


def test_the_repository_is_removed_after_the_block(temporary: Path) -> None:
    with make_repository(keep=False) as made:
        assert made.path.is_relative_to(temporary)
    assert list(temporary.iterdir()) == []


def test_the_repository_is_removed_if_the_block_fails(temporary: Path) -> None:
    with pytest.raises(KeyboardInterrupt), make_repository(keep=False):
        raise KeyboardInterrupt
    assert list(temporary.iterdir()) == []


def test_keep_keeps_only_the_repository(temporary: Path) -> None:
    with make_repository(keep=True) as made:
        pass
    assert list(temporary.iterdir()) == [made.path]
    assert set(FILES) <= {path.name for path in made.path.iterdir()}


@pytest.mark.parametrize("has_git", [True, False])
def test_the_diff_is_the_same_with_and_without_git(monkeypatch: pytest.MonkeyPatch, has_git: bool) -> None:
    if not has_git:
        monkeypatch.setenv("PATH", "/nowhere")
    with make_repository(keep=False) as made:
        assert (made.is_git, made.difference()) == (has_git, "")
        mend(made)
        told = made.difference()
    assert [line for line in told.splitlines() if line[:2] in {"- ", "+ "}] == [f"-    {BUG}", f"+    {MENDED}"]
    assert "--- a/calculator.py\n+++ b/calculator.py\n" in told


def test_a_deleted_file_is_part_of_the_diff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with make_repository(keep=False) as made:
        (made.path / "test_calculator.py").unlink()
        assert "-    def test_add(self):" in made.difference()


def test_user_settings_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[commit]\n\tgpgsign = true\n[core]\n\thooksPath = /nowhere\n[broken\n")
    (temporary / "test_broken.py").write_text("raise SystemExit\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    with make_repository(keep=False) as made:
        assert made.is_git
        assert "FAILED (failures=1)" in made.test().output


def test_tests_without_an_end_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.cli.demo_repository.COMMAND_TIMEOUT", 0.2)
    with make_repository(keep=False) as made:
        (made.path / "test_calculator.py").write_text("while True: pass\n", "utf-8")
        assert made.test().exit_code is None


def test_python_is_the_current_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = tmp_path / "opt" / "python3"
    alone.parent.mkdir()
    alone.symlink_to("/bin/echo")
    monkeypatch.setattr("sys.executable", str(alone))
    with make_repository(keep=False) as made:
        first = Path(made.env["PATH"].partition(":")[0], "python")
        assert str(alone) in first.read_text("utf-8")
