"""Worktrees of runs, with real git: where they are possible, what git runs, and that no work is lost."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_mux.errors import AgentMuxError, ValidationError
from agent_mux.process.command import ProgramResult
from agent_mux.sdk.options import RunOptions
from agent_mux.worktrees import git as git_module
from agent_mux.worktrees import worktree as module
from agent_mux.worktrees.worktree import RunWorktree, WorktreePlan, plan_worktree

RUN = "01K0Z3NDEKTSV4RRFFQ69G5FAV"
GIT = shutil.which("git") or ""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "tester")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "tester@example.com")


def git(place: Path, *words: str) -> str:
    done = subprocess.run([GIT, *words], cwd=place, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Create a repository with one commit (`README`, `deep/down/file`) and ignored files."""
    place = tmp_path / "repository"
    (place / "deep" / "down").mkdir(parents=True)
    git(place, "init", "--quiet", "--initial-branch=main")
    (place / "README").write_text("hello\n")
    (place / "deep" / "down" / "file").write_text("file\n")
    (place / ".gitignore").write_text("*.log\n")
    commit(place)
    return place


def commit(place: Path) -> str:
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--allow-empty", "--message", "more")
    return git(place, "rev-parse", "HEAD")


def plan(cwd: Path, **env: str) -> WorktreePlan:
    options = RunOptions(agent="-", prompt="-", cwd=cwd, isolation="worktree")
    return plan_worktree(options, RUN, {**os.environ, **env}, Path("/nowhere"))[0]


def create(cwd: Path, tmp_path: Path, **options_: Any) -> tuple[RunWorktree, str | None]:
    options = RunOptions(agent="-", prompt="-", cwd=cwd, isolation="worktree", **options_)
    plan, environ = plan_worktree(options, RUN, os.environ, tmp_path / "worktrees")
    worktree = RunWorktree(plan, environ)
    return worktree, worktree.create(lambda: True)


def worktrees_of(repository: Path) -> int:
    return git(repository, "worktree", "list").count("\n") + 1


def test_a_worktree_has_the_committed_files_and_the_same_subdirectory(repository: Path, tmp_path: Path) -> None:
    (repository / "README").write_text("changed\n")
    (repository / "new").write_text("new\n")
    worktree, note = create(repository / "deep" / "down", tmp_path, carry_changes=False)
    plan = worktree.plan
    assert note is None
    assert plan.cwd == str(tmp_path / "worktrees" / RUN / "deep" / "down")
    assert (plan.path / "README").read_text() == "hello\n"
    assert not (plan.path / "new").exists()
    assert git(plan.path, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    assert plan.path.stat().st_mode & 0o777 == plan.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_worktree_has_the_commit_of_the_time_of_the_plan(repository: Path, tmp_path: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    options = RunOptions(agent="-", prompt="-", cwd=repository, isolation="worktree")
    plan, environ = plan_worktree(options, RUN, os.environ, tmp_path / "worktrees")
    commit(repository)
    worktree = RunWorktree(plan, environ)
    assert worktree.create(lambda: True) is None
    assert (plan.base, git(plan.path, "rev-parse", "HEAD")) == (base, base)


def test_an_unchanged_worktree_is_removed(repository: Path, tmp_path: Path) -> None:
    worktree, _ = create(repository, tmp_path)
    (worktree.plan.path / "ignored.log").write_text("ignored")
    (worktree.plan.path / "README").touch()
    final, note = worktree.finish()
    assert (final.is_changed, final.base_commit, note) == (False, worktree.plan.base, None)
    assert not worktree.plan.path.exists()
    assert worktrees_of(repository) == 1


def write(worktree: Path) -> None:
    (worktree / "README").write_text("better\n")


def remove(worktree: Path) -> None:
    (worktree / "README").unlink()


def add(worktree: Path) -> None:
    (worktree / "deep" / "new").mkdir()
    (worktree / "deep" / "new" / "file").write_text("")


def commit_and_go_back(worktree: Path) -> None:
    add(worktree)
    commit(worktree)
    git(worktree, "checkout", "--quiet", "--detach", "HEAD~1")


def commit_on_a_branch(worktree: Path) -> None:
    git(worktree, "checkout", "--quiet", "-b", "work")
    commit(worktree)


def stage_and_restore(worktree: Path) -> None:
    write(worktree)
    git(worktree, "add", "README")
    git(worktree, "restore", "--worktree", "--source=HEAD", "README")


def hide_untracked(worktree: Path) -> None:
    git(worktree, "config", "status.showUntrackedFiles", "no")
    add(worktree)


def break_it(worktree: Path) -> None:
    (worktree / ".git").write_text("gitdir: /nowhere\n")


@pytest.mark.parametrize(
    "work",
    [write, remove, add, commit, commit_and_go_back, commit_on_a_branch, stage_and_restore, hide_untracked, break_it],
)
def test_a_changed_worktree_is_kept(repository: Path, tmp_path: Path, work: Callable[[Path], object]) -> None:
    worktree, _ = create(repository, tmp_path)
    path = worktree.plan.path
    work(path)
    before = sorted(path.rglob("*"))
    final, note = worktree.finish()
    assert (final.path, final.is_changed) == (str(path), True)
    assert note is not None
    assert note.startswith(f"the worktree {path} is kept: ")
    assert sorted(path.rglob("*")) == before


def test_a_worktree_that_git_cannot_compare_is_kept(repository: Path, tmp_path: Path) -> None:
    worktree, _ = create(repository, tmp_path)
    (repository / ".git" / "worktrees" / RUN / "index").write_text("no index")
    final, note = worktree.finish()
    assert (final.is_changed, worktree.plan.path.exists()) == (True, True)
    assert f"the worktree {worktree.plan.path} is kept: fatal: " in (note or "")


@pytest.mark.parametrize("trouble", ["timeout", "complaint"])
def test_changes_that_cannot_be_read_refuse_the_worktree(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    (repository / "new").write_text("new")
    real = git_module.run_program

    def slow(argv: tuple[str, ...], **how: Any) -> ProgramResult:
        if "diff-files" not in argv:
            return real(argv, **how)
        if trouble == "timeout":
            raise AgentMuxError("TIMEOUT", "it did not end")
        return ProgramResult(argv, 128, "", "fatal: no")

    monkeypatch.setattr(git_module, "run_program", slow)
    with pytest.raises(AgentMuxError, match=r"cannot be read: .* carry_changes=False") as caught:
        create(repository, tmp_path)
    assert caught.value.code == "SPAWN_ERROR"
    assert list((tmp_path / "worktrees").iterdir()) == []
    assert create(repository, tmp_path, carry_changes=False)[1] is None


def test_a_worktree_that_the_agent_removed_is_reported(repository: Path, tmp_path: Path) -> None:
    worktree, _ = create(repository, tmp_path)
    git(repository, "worktree", "remove", str(worktree.plan.path))
    final, note = worktree.finish()
    assert (final.is_changed, note) == (
        True,
        f"the worktree {worktree.plan.path} was removed during the run",
    )


def test_neither_hooks_nor_the_monitor_of_the_repository_run(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    script = f"#!/bin/sh\necho $0 >> {trap}\n"
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "post-rewrite"):
        hook = repository / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(script)
        hook.chmod(0o755)
    monitor = tmp_path / "monitor"
    monitor.write_text(script)
    monitor.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(monitor))
    trap.unlink(missing_ok=True)
    worktree, _ = create(repository, tmp_path)
    assert worktree.finish()[0].is_changed is False
    assert not trap.exists()


def test_after_the_run_git_does_not_read_files_that_the_agent_wrote(repository: Path, tmp_path: Path) -> None:
    """A repository in the worktree that replaces the real one, with a configuration that starts a program."""
    trap = tmp_path / "sprung"
    worktree, _ = create(repository, tmp_path)
    path = worktree.plan.path
    shutil.copytree(repository / ".git", path / "evil")
    git(path, f"--git-dir={path / 'evil'}", "config", "filter.x.clean", f"echo sprung >> {trap}; cat")
    (path / ".gitattributes").write_text("* filter=x\n")
    (path / ".git").write_text("gitdir: evil\n")
    write(path)
    assert worktree.finish()[0].is_changed is True
    assert not trap.exists()


def test_variables_of_another_repository_are_ignored(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    options = RunOptions(agent="-", prompt="-", cwd=repository, isolation="worktree", env={"GIT_WORK_TREE": "/mine"})
    plan, environ = plan_worktree(options, RUN, {**os.environ, **options.env}, tmp_path / "worktrees")
    assert plan.repository == str(repository)
    assert ("GIT_DIR" in environ, environ["GIT_WORK_TREE"]) == (False, "/mine")
    worktree = RunWorktree(plan, environ)
    assert worktree.create(lambda: True) is None
    assert worktree.finish()[0].is_changed is False


def test_a_directory_that_the_commit_lacks_is_created(repository: Path, tmp_path: Path) -> None:
    (repository / "not" / "committed").mkdir(parents=True)
    worktree, _ = create(repository / "not" / "committed", tmp_path)
    assert Path(worktree.plan.cwd).is_dir()
    assert worktree.finish()[0].is_changed is False


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_cwd_that_is_a_link_or_a_file_in_the_commit_is_refused(repository: Path, tmp_path: Path, kind: str) -> None:
    place = repository / "place"
    if kind == "link":
        place.symlink_to(tmp_path)
    else:
        place.write_text("")
    commit(repository)
    place.unlink()
    place.mkdir()
    with pytest.raises(AgentMuxError, match=r"is outside of the worktree|is not a directory in the commit") as caught:
        create(place, tmp_path, carry_changes=False)
    assert caught.value.code == "SPAWN_ERROR"
    assert not (tmp_path / "worktrees" / RUN).exists()
    assert worktrees_of(repository) == 1


def test_an_existing_directory_is_not_touched(repository: Path, tmp_path: Path) -> None:
    worktree, _ = create(repository, tmp_path)
    write(worktree.plan.path)
    with pytest.raises(AgentMuxError, match="cannot be created: File exists"):
        create(repository, tmp_path)
    assert (worktree.plan.path / "README").read_text() == "better\n"


def test_a_failing_git_leaves_nothing_behind(repository: Path, tmp_path: Path) -> None:
    options = RunOptions(agent="-", prompt="-", cwd=repository, isolation="worktree")
    plan, environ = plan_worktree(options, RUN, os.environ, tmp_path / "worktrees")
    with pytest.raises(AgentMuxError, match=f"git could not create a worktree of {repository} at {plan.path}: fatal: "):
        RunWorktree(replace(plan, base="0" * 40), environ).create(lambda: True)
    assert not plan.path.exists()
    assert worktrees_of(repository) == 1


def test_creation_is_aborted_when_no_longer_wanted(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "filter.slow.smudge", "sleep 60; cat")
    (repository / ".gitattributes").write_text("README filter=slow\n")
    commit(repository)
    options = RunOptions(agent="-", prompt="-", cwd=repository, isolation="worktree")
    plan, environ = plan_worktree(options, RUN, os.environ, tmp_path / "worktrees")
    answers = iter([True, False])
    with pytest.raises(AgentMuxError) as caught:
        RunWorktree(plan, environ).create(lambda: next(answers, False))
    assert caught.value.code == "ABORTED"
    assert not plan.path.exists()
    assert worktrees_of(repository) == 1


# -- where no worktree is possible


def test_without_git_or_commit_the_plan_is_refused(tmp_path: Path, repository: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "--quiet")
    with pytest.raises(ValidationError, match=r"isolation: got 'worktree'.* a commit \(it has none yet: git commit"):
        plan(empty)
    with pytest.raises(ValidationError, match="git is not on PATH"):
        plan(repository, PATH=str(tmp_path))


def test_a_git_that_does_not_respond_refuses_the_plan(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setattr(module, "QUERY_TIMEOUT", 0.2)
    with pytest.raises(ValidationError, match=r"isolation: .*did not end within 0\.2 s"):
        plan(repository, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def test_bare_repositories_and_external_working_trees_are_refused(tmp_path: Path, repository: Path) -> None:
    bare = tmp_path / "bare"
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), str(bare))
    git(repository, "config", "core.worktree", str(tmp_path / "home"))
    for place in (bare, repository / ".git", repository):
        with pytest.raises(ValidationError, match="cwd is not in its working tree"):
            plan(place)


def test_a_worktree_can_be_created_from_a_worktree(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(repository, "worktree", "add", "--quiet", "-b", "other", str(other))
    base = commit(other)
    worktree, _ = create(other, tmp_path)
    assert (worktree.plan.base, worktree.plan.repository) == (base, str(other))
    assert worktree.finish()[0].is_changed is False
