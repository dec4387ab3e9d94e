"""A worktree begins as the repository is: uncommitted changes, included files, what a setup command makes of them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.worktrees.test_worktree import GIT, RUN, commit, create, git, home, repository, worktrees_of

from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.carrying import Carried
from agent_mux.worktrees.kept import KeptWorktrees

__all__ = ["home", "repository"]
TRACKED_STATE = ("status", "--porcelain=v1", "-z", "--untracked-files=all")


def status_of(place: Path) -> str:
    """Return what git reports as changed."""
    done = subprocess.run([GIT, *TRACKED_STATE], cwd=place, capture_output=True, check=True)
    return os.fsdecode(done.stdout)


def state_of(repository: Path) -> tuple[str, ...]:
    """Return what must not change in the user's repository."""
    return (
        status_of(repository),
        git(repository, "rev-parse", "HEAD"),
        git(repository, "for-each-ref"),
        git(repository, "stash", "list"),
        git(repository, "ls-files", "--stage", "-v"),
    )


def make_dirty(repository: Path) -> None:
    """Change, stage, delete and add files, links and modes."""
    for name in ("staged", "changed", "deleted", "removed", "mode", "turned"):
        (repository / name).write_text(f"{name}\n")
    commit(repository)
    (repository / "staged").write_text("staged and then\n")
    git(repository, "add", "staged")
    (repository / "staged").write_text("changed again\n")
    (repository / "changed").write_bytes(b"\x00\xff binary")
    (repository / "deleted").unlink()
    git(repository, "rm", "--quiet", "removed")
    (repository / "mode").chmod(0o755)
    (repository / "turned").unlink()
    (repository / "turned").mkdir()
    (repository / "turned" / "inner").write_text("inner\n")
    (repository / "new dir").mkdir()
    (repository / "new dir" / "new\nfile").write_text("new\n")
    (repository / "link").symlink_to("README")
    (repository / os.fsdecode(b"n\xe4me")).write_text("latin\n")


def test_worktree_begins_with_the_uncommitted_state(repository: Path, tmp_path: Path) -> None:
    make_dirty(repository)
    before = state_of(repository)
    worktree, note = create(repository, tmp_path)
    path = worktree.plan.path
    assert status_of(path) == status_of(repository)
    for name in ("staged", "changed", "turned/inner", "new dir/new\nfile", os.fsdecode(b"n\xe4me")):
        assert (path / name).read_bytes() == (repository / name).read_bytes()
    assert not (path / "deleted").exists()
    assert (path / "mode").stat().st_mode & 0o111
    assert str((path / "link").readlink()) == "README"
    assert "uncommitted files" in (note or "")
    assert worktree.finish()[0].is_changed is False
    assert state_of(repository) == before
    assert worktrees_of(repository) == 1


def test_files_that_are_only_staged_are_listed(repository: Path, tmp_path: Path) -> None:
    (repository / "added").write_text("added\n")
    (repository / "README").write_text("staged\n")
    git(repository, "add", "added", "README")
    git(repository, "rm", "--quiet", "deep/down/file")
    worktree, note = create(repository, tmp_path)
    assert note == "the worktree begins with 3 uncommitted files (README, added, deep/down/file)"
    assert status_of(worktree.plan.path) == status_of(repository)


def test_conflicts_of_a_merge_are_carried(repository: Path, tmp_path: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "other")
    (repository / "README").write_text("theirs\n")
    commit(repository)
    git(repository, "checkout", "--quiet", "main")
    (repository / "README").write_text("ours\n")
    commit(repository)
    with pytest.raises(Exception, match="merge"):
        git(repository, "merge", "other")
    worktree, _ = create(repository, tmp_path)
    path = worktree.plan.path
    assert (path / "README").read_text() == (repository / "README").read_text()
    assert status_of(path) == status_of(repository)
    assert worktree.finish()[0].is_changed is False


def test_included_files_are_copied_and_others_are_not(repository: Path, tmp_path: Path) -> None:
    (repository / ".gitignore").write_text(".env\n.env.*\nnode_modules/\ncache/\nshared\n")
    (repository / ".worktreeinclude").write_text("# needed\n.env\nnode_modules/\ncache/*.json\nshared\nREADME\n")
    commit(repository)
    (repository / ".env").write_text("KEY=1\n")
    (repository / ".env").chmod(0o600)
    (repository / ".env.production").write_text("SECRET=1\n")
    (repository / "node_modules" / "a" / "bin").mkdir(parents=True)
    (repository / "node_modules" / "a" / "index.js").write_text("1\n")
    (repository / "node_modules" / "a" / "bin" / "run").symlink_to("../index.js")
    (repository / "cache").mkdir()
    (repository / "cache" / "one.json").write_text("{}")
    (repository / "cache" / "two.bin").write_text("no")
    (tmp_path / "elsewhere").mkdir()
    (repository / "shared").symlink_to("../elsewhere")
    worktree, note = create(repository, tmp_path)
    path = worktree.plan.path
    assert (path / ".env").stat().st_mode & 0o777 == 0o600
    assert not (path / ".env.production").exists()
    assert (path / "node_modules" / "a" / "bin" / "run").read_text() == "1\n"
    assert str((path / "node_modules" / "a" / "bin" / "run").readlink()) == "../index.js"
    assert [entry.name for entry in (path / "cache").iterdir()] == ["one.json"]
    assert (path / "shared").resolve() == (tmp_path / "elsewhere").resolve()
    assert "4 entries of .worktreeinclude" in (note or "")
    assert "1 link to a shared place (shared)" in (note or "")
    assert "1 entry of .worktreeinclude matches nothing to copy (README)" in (note or "")
    (path / ".env").write_text("KEY=2\n")  # ignored files do not count as changes
    assert worktree.finish()[0].is_changed is False
    assert (repository / ".env").read_text() == "KEY=1\n"
    assert (tmp_path / "elsewhere").is_dir()


def test_files_of_submodules_are_copied(repository: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "--quiet")
    (inner / "code").write_text("code\n")
    commit(inner)
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "lib")
    commit(repository)
    worktree, note = create(repository, tmp_path)
    path = worktree.plan.path
    assert (path / "lib" / "code").read_text() == "code\n"
    assert not (path / "lib" / ".git").exists()
    assert "1 submodule without its history (lib)" in (note or "")
    (path / "lib" / "code").write_text("changed\n")
    final, why = worktree.finish()
    assert (final.is_changed, "submodule" in (why or "")) == (True, True)


def test_setup_command_prepares_the_worktree(repository: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "open('made', 'w').write('by setup')"]
    worktree, _ = create(repository / "deep", tmp_path, setup_command=command)
    assert (Path(worktree.plan.cwd) / "made").read_text() == "by setup"
    assert worktree.finish()[0].is_changed is False  # what it made is no work of the agent


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ([sys.executable, "-c", "import sys; sys.exit('no registry')"], r"exit code 1: no registry"),
        (["no-such-program"], "no-such-program is not on PATH"),
    ],
)
def test_failing_setup_leaves_nothing_behind(repository: Path, tmp_path: Path, command: list[str], reason: str) -> None:
    with pytest.raises(AgentMuxError, match=reason) as caught:
        create(repository, tmp_path, setup_command=command)
    assert caught.value.code == "SPAWN_ERROR"
    assert worktrees_of(repository) == 1
    assert list((tmp_path / "worktrees").iterdir()) == []
    assert list((tmp_path / "worktree-records").iterdir()) == []


# -- what a run leaves behind


@pytest.fixture
def kept(tmp_path: Path) -> KeptWorktrees:
    return KeptWorktrees(tmp_path)


def leave(repository: Path, tmp_path: Path, **files: Any) -> Path:
    """Let a run change files in its worktree, which is kept."""
    worktree, _ = create(repository, tmp_path)
    for name, content in files.items():
        (worktree.plan.path / name).write_bytes(content)
    assert worktree.finish()[0].is_changed
    return worktree.plan.path


def test_kept_worktree_is_listed_with_its_changes(repository: Path, tmp_path: Path, kept: KeptWorktrees) -> None:
    assert kept.list() == []
    (repository / "README").write_text("hello\nmine\n")
    path = leave(repository, tmp_path, README=b"hello\nmine\nyours\n", new=b"\x00\x01")
    (found,) = kept.list()
    assert (found.run_id, found.path, found.repository) == (RUN, str(path), str(repository))
    assert (found.is_in_use, found.problem) == (False, None)
    assert [(one.path, one.change, one.added, one.removed) for one in found.changes] == [
        ("README", "modified", 1, 0),  # without the line that was carried
        ("new", "created", None, None),
    ]
    assert kept.get(RUN[:10].lower()) == found


def test_worktree_of_a_run_in_progress_is_neither_applied_nor_removed(
    repository: Path, tmp_path: Path, kept: KeptWorktrees
) -> None:
    worktree, _ = create(repository, tmp_path)
    assert kept.get(RUN).is_in_use
    for action in (kept.apply, kept.clean):
        with pytest.raises(AgentMuxError, match=f"run {RUN} still works in its worktree"):
            action(RUN)
    worktree.finish()


def test_changes_are_applied_to_a_dirty_repository(repository: Path, tmp_path: Path, kept: KeptWorktrees) -> None:
    (repository / "README").write_text("hello\nmine\n")
    leave(repository, tmp_path, README=b"hello\nmine\nyours\n", new=b"\x00\xff\x01")
    applied = kept.apply(RUN)
    assert (applied.files, applied.is_merged) == (("README", "new"), False)
    assert (repository / "README").read_text() == "hello\nmine\nyours\n"
    assert (repository / "new").read_bytes() == b"\x00\xff\x01"


def test_patch_reproduces_the_changes_byte_for_byte(repository: Path, tmp_path: Path, kept: KeptWorktrees) -> None:
    (repository / "latin").write_bytes(b"caf\xe9\r\n")
    commit(repository)
    leave(repository, tmp_path, latin=b"caf\xe9s\r\n", image=bytes(range(256)))
    other = tmp_path / "other"
    shutil.copytree(repository, other)
    (tmp_path / "p").write_bytes(kept.patch(RUN))
    git(other, "apply", "--whitespace=nowarn", str(tmp_path / "p"))
    assert (other / "latin").read_bytes() == b"caf\xe9s\r\n"
    assert (other / "image").read_bytes() == bytes(range(256))


LINES = [f"line {number}\n" for number in range(20)]


def test_changes_are_merged_when_the_repository_has_moved_on(
    repository: Path, tmp_path: Path, kept: KeptWorktrees
) -> None:
    (repository / "README").write_text("".join(LINES))  # not committed: only our objects have it
    leave(repository, tmp_path, README="".join(["first\n", *LINES[1:]]).encode())
    (repository / "README").write_text("".join([*LINES[:2], "theirs\n", *LINES[3:]]))  # in the context of the change
    commit(repository)
    assert kept.apply(RUN).is_merged
    assert (repository / "README").read_text() == "".join(["first\n", LINES[1], "theirs\n", *LINES[3:]])


def test_changes_are_merged_with_uncommitted_ones_and_nothing_is_staged(
    repository: Path, tmp_path: Path, kept: KeptWorktrees
) -> None:
    (repository / "README").write_text("".join(LINES))
    commit(repository)
    leave(repository, tmp_path, README="".join(["first\n", *LINES[1:]]).encode(), new=b"new\n")
    (repository / "README").write_text("".join([*LINES[:2], "theirs\n", *LINES[3:]]))
    assert kept.apply(RUN).is_merged
    assert (repository / "README").read_text() == "".join(["first\n", LINES[1], "theirs\n", *LINES[3:]])
    assert git(repository, "diff", "--cached", "--name-only") == ""
    assert kept.apply(RUN).is_merged  # again: the files have the changes
    assert (repository / "new").read_text() == "new\n"


def test_uncommitted_changes_that_conflict_stay_as_they_are(
    repository: Path, tmp_path: Path, kept: KeptWorktrees
) -> None:
    (repository / "README").write_text("".join(LINES))
    commit(repository)
    leave(repository, tmp_path, README="".join(["first\n", *LINES[1:]]).encode(), new=b"new\n")
    (repository / "README").write_text("".join(["theirs\n", *LINES[1:]]))
    before = state_of(repository)
    with pytest.raises(AgentMuxError, match=r"conflicts in README.*amux worktrees diff"):
        kept.apply(RUN)
    assert state_of(repository) == before
    assert not (repository / "new").exists()


def test_conflicting_changes_are_not_applied(repository: Path, tmp_path: Path, kept: KeptWorktrees) -> None:
    (repository / "README").write_text("".join(LINES))
    commit(repository)
    leave(repository, tmp_path, README="".join(["first\n", *LINES[1:]]).encode(), new=b"new\n")
    (repository / "README").write_text("".join(["theirs\n", *LINES[1:]]))
    commit(repository)
    before = state_of(repository)
    with pytest.raises(AgentMuxError, match=r"do not fit .*amux worktrees diff"):
        kept.apply(RUN)
    assert state_of(repository) == before
    assert not (repository / "new").exists()


def test_removed_worktree_leaves_its_patch(repository: Path, tmp_path: Path, kept: KeptWorktrees) -> None:
    path = leave(repository, tmp_path, new=b"new\n")
    removed = kept.clean(RUN)
    assert removed.patch is not None
    assert Path(removed.patch).stat().st_mode & 0o777 == 0o600
    git(repository, "apply", removed.patch)
    assert (repository / "new").read_text() == "new\n"
    assert not path.exists()
    assert worktrees_of(repository) == 1
    assert list((tmp_path / "worktree-records").iterdir()) == []
    with pytest.raises(AgentMuxError, match="amux worktrees list"):
        kept.get(RUN)


def test_worktree_of_a_deleted_repository_is_removed_on_request_only(
    repository: Path, tmp_path: Path, kept: KeptWorktrees
) -> None:
    path = leave(repository, tmp_path, new=b"new\n")
    shutil.rmtree(repository)
    assert "no longer has it" in (kept.get(RUN).problem or "")
    with pytest.raises(AgentMuxError, match="--no-patch"):
        kept.clean(RUN)
    assert (path / "new").exists()
    assert kept.clean(RUN, keep_patch=False).patch is None
    assert not path.exists()


def test_missing_program_of_a_filter_does_not_matter(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "filter.lfs.clean", "cat")
    (repository / ".gitattributes").write_text("*.bin filter=lfs\n")
    (repository / "large.bin").write_text("content\n")
    commit(repository)
    os.utime(repository / ".git" / "index", (1, 1))  # older than the file, so that git has to read the file
    git(repository, "config", "filter.lfs.clean", "no-such-program-of-lfs")
    git(repository, "config", "filter.lfs.required", "true")
    worktree, _ = create(repository, tmp_path)
    assert (worktree.plan.path / "large.bin").read_text() == "content\n"


@pytest.mark.parametrize(
    ("carried", "note"),
    [
        (Carried(), None),
        (Carried(skipped=["sub/"]), "the worktree lacks sub/ (not copied)"),
        (Carried(unmatched=[".envv"]), "1 entry of .worktreeinclude matches nothing to copy (.envv)"),
        (
            Carried(skipped=["a"], unmatched=["b", "c/"]),
            "the worktree lacks a (not copied); 2 entries of .worktreeinclude match nothing to copy (b, c/)",
        ),
        (
            Carried(changed=["a"], skipped=["sub/"]),
            "the worktree begins with 1 uncommitted file (a) and lacks sub/ (not copied)",
        ),
    ],
)
def test_note_names_what_was_carried_and_what_could_not_be(carried: Carried, note: str | None) -> None:
    assert carried.describe() == note
