"""Workspaces begin as the source is, contain no other history, and leave the source as it was."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit.worktrees.test_start import make_dirty, status_of
from tests.unit.worktrees.test_worktree import GIT, commit, git

from agent_mux.compare.frozen_start import FrozenStart
from agent_mux.compare.ledger import START
from agent_mux.errors import AgentMuxError
from agent_mux.worktrees import directory_copies


def content_of(top: Path) -> dict[str, tuple[str, int]]:
    """Return digest and time of each file of a directory, `.git` included."""
    found = {}
    for place, _, names in os.walk(top):
        for name in names:
            path = Path(place, name)
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path)] = (hashlib.sha256(data).hexdigest(), path.lstat().st_mtime_ns)
    return found


def freeze(source: Path, tmp_path: Path, *, setup: tuple[str, ...] = (), carry_changes: bool = True) -> FrozenStart:
    folder = tmp_path / "comparison"
    return FrozenStart.freeze(source, folder, os.environ, setup=setup, carry_changes=carry_changes)


def test_source_is_byte_identical_after_a_trial(repository: Path, tmp_path: Path) -> None:
    (repository / "README").write_text("stashed\n")
    git(repository, "stash", "push", "--quiet")
    git(repository, "branch", "other")
    git(repository, "tag", "v1")
    make_dirty(repository)
    before = content_of(repository)
    start = freeze(repository, tmp_path)
    workspace = start.make_workspace(tmp_path / "w" / "1")
    (workspace.path / "README").write_text("fixed\n")
    workspace.write_patch(tmp_path / "patch", "patch")
    start.check_out(tmp_path / "w" / "2", workspace.snapshot()).remove()
    workspace.remove()
    assert content_of(repository) == before
    assert not any((tmp_path / "w").iterdir())


def test_reader_sees_no_incomplete_record(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "comparison").mkdir()
    open_by_a_reader = tmp_path / "open"
    open_by_a_reader.write_text("earlier content")
    (tmp_path / "comparison" / START).hardlink_to(open_by_a_reader)
    freeze(repository, tmp_path)
    assert open_by_a_reader.read_text() == "earlier content"  # the file was replaced, not written to


def test_workspace_begins_with_the_uncommitted_state(repository: Path, tmp_path: Path) -> None:
    make_dirty(repository)
    start = freeze(repository, tmp_path)
    workspace = start.make_workspace(tmp_path / "w")
    assert status_of(workspace.path) == status_of(repository)
    for name in ("staged", "changed", "turned/inner", "new dir/new\nfile", os.fsdecode(b"n\xe4me")):
        assert (workspace.path / name).read_bytes() == (repository / name).read_bytes()
    assert (workspace.path / "mode").stat().st_mode & 0o111
    assert workspace.snapshot() == start.record.tree
    assert "new dir/new\nfile" in start.record.changed
    assert any("uncommitted files" in note for note in start.record.notes)


def test_uncommitted_state_can_be_left_behind(repository: Path, tmp_path: Path) -> None:
    make_dirty(repository)
    workspace = freeze(repository, tmp_path, carry_changes=False).make_workspace(tmp_path / "w")
    assert status_of(workspace.path) == ""
    assert (workspace.path / "staged").read_text() == "staged\n"


def test_workspace_has_the_history_of_head_only(repository: Path, tmp_path: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "--quiet", "-b", "fix")
    (repository / "README").write_text("the fix\n")
    later = commit(repository)
    git(repository, "tag", "fixed")
    git(repository, "checkout", "--quiet", "main")
    git(repository, "reset", "--quiet", "--hard", base)
    (repository / "README").write_text("stashed\n")
    git(repository, "stash", "push", "--quiet")
    stash = git(repository, "rev-parse", "stash")
    top = freeze(repository, tmp_path).make_workspace(tmp_path / "w").path
    assert git(top, "log", "--all", "--format=%H") == base
    assert git(top, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert git(top, "remote") == git(top, "reflog") == git(top, "stash", "list") == ""
    for secret in (later, stash, git(repository, "rev-parse", "fixed:README")):
        assert subprocess.run([GIT, "cat-file", "-e", secret], cwd=top, capture_output=True, check=False).returncode
    assert not (top / ".git" / "objects" / "info" / "alternates").exists()
    assert not (top / ".git" / "hooks").exists()
    assert str(repository) not in (top / ".git" / "config").read_text()
    git(top, "fsck", "--full", "--strict")


def test_detached_head_and_subdirectory_are_kept(repository: Path, tmp_path: Path) -> None:
    git(repository, "checkout", "--quiet", "--detach")
    start = freeze(repository / "deep" / "down", tmp_path)
    workspace = start.make_workspace(tmp_path / "w")
    assert workspace.cwd == tmp_path / "w" / "deep" / "down"
    assert git(workspace.path, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"


def test_start_is_opened_again(repository: Path, tmp_path: Path) -> None:
    record = freeze(repository, tmp_path).record
    start = FrozenStart.open(tmp_path / "comparison", os.environ)
    assert start.record == record
    assert start.make_workspace(tmp_path / "w").snapshot() == record.tree


def test_incomplete_start_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="no complete frozen start"):
        FrozenStart.open(tmp_path, os.environ)


def test_setup_runs_once_and_its_results_are_in_each_workspace(repository: Path, tmp_path: Path) -> None:
    command = ("sh", "-c", f"echo built > built.log; echo x >> {tmp_path}/runs; ln -s $PWD/README absolute.log")
    start = freeze(repository, tmp_path, setup=command)
    for number in range(2):
        workspace = start.make_workspace(tmp_path / str(number))
        assert (workspace.path / "built.log").read_text() == "built\n"
        assert (workspace.path / "absolute.log").resolve() == workspace.path / "README"
        assert workspace.snapshot() == start.record.tree
    assert (tmp_path / "runs").read_text() == "x\n"


def test_scripts_with_the_path_of_the_start_are_adapted(repository: Path, tmp_path: Path) -> None:
    make = (
        'mkdir env.log; printf "#!/bin/sh\\necho $PWD\\n" > env.log/run;'
        ' chmod 555 env.log/run; printf "$PWD\\0" > b.log'
    )
    start = freeze(repository, tmp_path, setup=("sh", "-c", make))
    workspace = start.make_workspace(tmp_path / "w")
    done = subprocess.run([workspace.path / "env.log" / "run"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(workspace.path)
    assert (workspace.path / "env.log" / "run").stat().st_mode & 0o777 == 0o555
    assert (workspace.path / "b.log").read_bytes() == os.fsencode(start.path) + b"\0"
    assert workspace.snapshot() == start.record.tree


def test_failed_setup_leaves_nothing(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="setup command `false` failed"):
        freeze(repository, tmp_path, setup=("false",))
    assert not any((tmp_path / "comparison").iterdir())


def test_freeze_that_is_not_wanted_ends(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError) as caught:
        FrozenStart.freeze(repository, tmp_path / "c", os.environ, is_wanted=lambda: False)
    assert caught.value.code == "ABORTED"


def test_included_files_are_in_the_workspace_and_never_in_a_patch(repository: Path, tmp_path: Path) -> None:
    (repository / ".gitignore").write_text("*.log\n.env\n")
    (repository / ".worktreeinclude").write_text(".env\nnode_modules/\n")
    (repository / ".env").write_text("SECRET=1\n")
    (repository / "other.log").write_text("log\n")
    start = freeze(repository, tmp_path)
    workspace = start.make_workspace(tmp_path / "w")
    assert (workspace.path / ".env").read_text() == "SECRET=1\n"
    assert not (workspace.path / "other.log").exists()
    assert start.record.included == (".env",)
    assert any("matches nothing to copy (node_modules/)" in note for note in start.record.notes)
    (workspace.path / ".gitignore").write_text("!.env\n")
    stored = workspace.write_patch(tmp_path / "patch", "patch")
    assert [one.path for one in stored.files] == [".gitignore"]


def test_repository_without_a_commit_works(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "--quiet", "--initial-branch=main")
    (source / "file").write_text("x\n")
    git(source, "add", "file")
    start = freeze(source, tmp_path)
    workspace = start.make_workspace(tmp_path / "w")
    assert status_of(workspace.path) == status_of(source) == "A  file\0"
    assert (start.record.base_commit, start.record.is_repository) == (None, True)


def test_empty_repository_works(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "--quiet")
    workspace = freeze(source, tmp_path).make_workspace(tmp_path / "w")
    (workspace.path / "new").write_text("new\n")
    assert [one.path for one in workspace.write_patch(tmp_path / "p", "p").files] == ["new"]


def test_sha256_repository_works(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "--quiet", "--object-format=sha256")
    (source / "file").write_text("x\n")
    commit(source)
    start = freeze(source, tmp_path)
    workspace = start.make_workspace(tmp_path / "w")
    assert status_of(workspace.path) == ""
    assert len(start.record.tree) == 64
    assert workspace.snapshot() == start.record.tree


def test_shallow_clone_works(repository: Path, tmp_path: Path) -> None:
    commit(repository)
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository}", "shallow")
    start = freeze(tmp_path / "shallow", tmp_path)
    top = start.make_workspace(tmp_path / "w").path
    assert git(top, "log", "--format=%H") == git(repository, "rev-parse", "HEAD")
    assert any("shallow" in note for note in start.record.notes)


def test_partial_clone_works(repository: Path, tmp_path: Path) -> None:
    (repository / "README").write_text("newer\n")
    commit(repository)
    git(repository, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", f"file://{repository}", "partial")
    objects = len(content_of(tmp_path / "partial" / ".git"))
    start = freeze(tmp_path / "partial", tmp_path)
    workspace = start.make_workspace(tmp_path / "w")
    assert git(workspace.path, "log", "--oneline").count("\n") == 1
    assert status_of(workspace.path) == ""
    assert len(content_of(tmp_path / "partial" / ".git")) == objects
    assert any("partial clone" in note for note in start.record.notes)


def test_bare_repository_and_git_directory_name_the_way_out(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare")
    for place in (tmp_path / "bare", repository / ".git"):
        with pytest.raises(AgentMuxError, match="git clone"):
            freeze(place, tmp_path)


def test_linked_worktree_works(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    workspace = freeze(tmp_path / "side", tmp_path).make_workspace(tmp_path / "w")
    assert git(workspace.path, "symbolic-ref", "HEAD") == "refs/heads/side"
    assert (workspace.path / ".git").is_dir()


@pytest.mark.slow
def test_submodules_are_files_whose_changes_are_in_the_patch(repository: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "--quiet")
    (inner / "lib").write_text("lib\n")
    commit(inner)
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    commit(repository)
    start = freeze(repository, tmp_path)
    workspace = start.make_workspace(tmp_path / "w")
    assert start.record.submodules == ("sub",)
    (workspace.path / "sub" / "lib").write_text("changed\n")
    assert [one.path for one in workspace.write_patch(tmp_path / "p", "p").files] == ["sub/lib"]


@pytest.mark.slow
def test_filters_without_their_program_do_not_matter(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "filter.lfs.clean", "cat")
    git(repository, "config", "filter.lfs.smudge", "cat")
    (repository / ".gitattributes").write_text("*.bin filter=lfs\n")
    (repository / "large.bin").write_text("content\n")
    commit(repository)
    for name in ("clean", "smudge"):
        git(repository, "config", f"filter.lfs.{name}", "no-such-program-of-lfs")
    git(repository, "config", "filter.lfs.required", "true")
    start = freeze(repository, tmp_path)
    workspace = start.make_workspace(tmp_path / "w")
    assert workspace.snapshot() == start.record.tree
    (workspace.path / "large.bin").write_text("changed\n")
    stored = workspace.write_patch(tmp_path / "p", "p")
    assert [one.path for one in stored.files] == ["large.bin"]
    checkout = start.check_out(tmp_path / "c", stored.end)
    assert (checkout.path / "large.bin").read_text() == "changed\n"
    committed = FrozenStart.freeze(repository, tmp_path / "other", os.environ, carry_changes=False)
    assert any("without filters" in note for note in committed.record.notes)


def test_directory_without_a_repository_is_copied_without_secrets(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "keys").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "nested").mkdir()
    git(source / "nested", "init", "--quiet")
    for name in (".env", ".env.local", ".env.example", "keys/server.pem", "main.py", ".npmrc"):
        (source / name).write_text(name)
    (source / ".worktreeinclude").write_text(".npmrc\n")
    start = freeze(source, tmp_path)
    workspace = start.make_workspace(tmp_path / "w")
    found = sorted(str(path.relative_to(workspace.path)) for path in workspace.path.rglob("*"))
    assert found == [".env.example", ".npmrc", ".worktreeinclude", "empty", "keys", "main.py", "nested"]
    assert start.record.is_repository is False
    assert any(".env, .env.local, keys/server.pem" in note for note in start.record.notes)
    assert any("nested/.git" in note for note in start.record.notes)
    (workspace.path / "main.py").write_text("changed")
    assert [one.path for one in workspace.write_patch(tmp_path / "p", "p").files] == ["main.py"]


def test_large_directory_is_refused_with_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_copies, "MAX_FILES", 3)
    source = tmp_path / "source"
    source.mkdir()
    for number in range(4):
        (source / str(number)).touch()
    with pytest.raises(AgentMuxError, match=r"more than 3 files or 2 GiB to copy: use a smaller"):
        freeze(source, tmp_path)


def test_missing_git_is_one_error(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="need git, which is not on PATH"):
        FrozenStart.freeze(repository, tmp_path / "c", {"PATH": str(tmp_path)})


def test_own_folder_inside_of_the_source_is_not_copied(repository: Path) -> None:
    start = FrozenStart.freeze(repository, repository / "comparisons" / "one", os.environ)
    workspace = start.make_workspace(repository / "comparisons" / "w")
    assert not (workspace.path / "comparisons" / "one").exists()


def test_workspace_is_independent_of_the_start(repository: Path, tmp_path: Path) -> None:
    start = freeze(repository, tmp_path)
    before = content_of(start.path)
    workspace = start.make_workspace(tmp_path / "w")
    inodes = {path.stat().st_ino for path in start.path.rglob("*") if path.is_file()}
    assert not inodes & {path.stat().st_ino for path in workspace.path.rglob("*") if path.is_file()}
    shutil.rmtree(workspace.path / ".git")
    assert content_of(start.path) == before
