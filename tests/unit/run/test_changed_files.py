"""Which files a run changed: compared by git, or reported by the agent."""

import os
import subprocess
from pathlib import Path

import pytest

from agent_mux.events import FileCreateEvent, FileDeleteEvent, FilePatchEvent, FileWriteEvent
from agent_mux.run.changed_files import ChangedFile, ReportedChanges, WorkingTreeChanges

RUN = ("01JD0000000000000000000000", "test", 1)
DIFF = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n-old\n+new\n+more\n same\n"
HOME_OF_GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
ENVIRON = {"PATH": os.environ["PATH"], **HOME_OF_GIT}


def git(directory: Path, *words: str) -> str:
    identity = ("-c", "user.name=tester", "-c", "user.email=tester@example.com")
    return subprocess.run(("git", *identity, *words), cwd=directory, env=ENVIRON, check=True, capture_output=True,
                          text=True, timeout=60).stdout  # fmt: skip


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    top = tmp_path / "work tree"
    (top / "src").mkdir(parents=True)
    (top / "kept.txt").write_text("one\ntwo\n")
    (top / "src/code.py").write_text("a = 1\nb = 2\n")
    (top / ".gitignore").write_text("*.log\n")
    git(top, "init", "-q")
    git(top, "add", ".")
    git(top, "commit", "-qm", "first")
    return top


def tracker(cwd: Path, scratch: Path) -> WorkingTreeChanges:
    changes = WorkingTreeChanges(str(cwd), ENVIRON, scratch / "snapshots")
    assert changes.begin() is None
    return changes


def compared(changes: WorkingTreeChanges, *reported: ChangedFile) -> list[ChangedFile]:
    files, note = changes.finish(reported)
    assert note is None
    return files


# -- git


def test_created_modified_and_deleted_files_have_line_counts(repository: Path, tmp_path: Path) -> None:
    changes = tracker(repository, tmp_path)
    (repository / "new file.txt").write_text("1\n2\n3\n")
    (repository / "src/code.py").write_text("a = 1\nb = 3\nc = 4\n")
    (repository / "kept.txt").unlink()
    (repository / "image.bin").write_bytes(b"\0\1\2")
    assert compared(changes) == [
        ChangedFile("image.bin", "created"),
        ChangedFile("kept.txt", "deleted", 0, 2),
        ChangedFile("new file.txt", "created", 3, 0),
        ChangedFile("src/code.py", "modified", 2, 1),
    ]


def test_changes_from_before_the_run_are_not_its_own(repository: Path, tmp_path: Path) -> None:
    (repository / "kept.txt").write_text("one\nchanged before\n")
    (repository / "untracked.txt").write_text("also before\n")
    (repository / "untracked-too.txt").write_text("before\n")
    changes = tracker(repository, tmp_path)
    (repository / "untracked.txt").write_text("also before\nand now\n")
    assert compared(changes) == [ChangedFile("untracked.txt", "modified", 1, 0)]


def test_commits_of_the_run_count(repository: Path, tmp_path: Path) -> None:
    changes = tracker(repository, tmp_path)
    (repository / "kept.txt").write_text("one\n")
    git(repository, "commit", "-qam", "second")
    assert compared(changes) == [ChangedFile("kept.txt", "modified", 0, 1)]


def test_change_that_was_undone_is_none(repository: Path, tmp_path: Path) -> None:
    changes = tracker(repository, tmp_path)
    (repository / "kept.txt").write_text("other\n")
    (repository / "kept.txt").write_text("one\ntwo\n")
    reported = ChangedFile("kept.txt", "modified", 1, 1)
    assert compared(changes, reported) == []


def test_paths_are_relative_to_the_working_directory(repository: Path, tmp_path: Path) -> None:
    changes = tracker(repository / "src", tmp_path)
    (repository / "src/code.py").write_text("")
    (repository / "kept.txt").write_text("")
    assert [file.path for file in compared(changes)] == ["../kept.txt", "code.py"]


def test_reported_files_that_git_does_not_compare_are_added(repository: Path, tmp_path: Path) -> None:
    changes = tracker(repository, tmp_path)
    (repository / "debug.log").write_text("x\n")
    (repository / "kept.txt").write_text("one\n")
    ignored = ChangedFile("debug.log", "created")
    outside = ChangedFile("../elsewhere.txt", "created")
    compared_too = ChangedFile("kept.txt", "modified")
    undone = ChangedFile("never-there.txt", "created")
    assert compared(changes, ignored, outside, compared_too, undone) == [
        outside,
        ignored,
        ChangedFile("kept.txt", "modified", 0, 1),
    ]


def test_files_in_a_repository_inside_are_those_reported(repository: Path, tmp_path: Path) -> None:
    inner = repository / "lib"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-qm", "first", "--allow-empty")
    git(repository, "add", "lib")  # as a submodule is
    changes = tracker(repository, tmp_path)
    (inner / "a.txt").write_text("x\n")
    (repository / "src/code.py").write_text("a = 1\n")
    assert compared(changes, ChangedFile("lib/a.txt", "created")) == [
        ChangedFile("lib/a.txt", "created"),
        ChangedFile("src/code.py", "modified", 0, 1),
    ]


def test_the_repository_is_not_touched(repository: Path, tmp_path: Path) -> None:
    (repository / "untracked.txt").write_text("x\n")

    def state() -> dict[str, bytes]:
        return {
            str(path.relative_to(repository)): path.read_bytes()
            for path in sorted((repository / ".git").rglob("*"))
            if path.is_file()
        }

    before = state()
    changes = tracker(repository, tmp_path)
    (repository / "untracked.txt").write_text("y\n")
    assert compared(changes) == [ChangedFile("untracked.txt", "modified", 1, 1)]
    assert state() == before


def test_repository_without_a_commit_is_compared(tmp_path: Path) -> None:
    top = tmp_path / "empty"
    top.mkdir()
    git(top, "init", "-q")
    changes = tracker(top, tmp_path)
    (top / "first.txt").write_text("1\n")
    assert compared(changes) == [ChangedFile("first.txt", "created", 1, 0)]


def test_change_of_equal_size_and_time_is_found(repository: Path, tmp_path: Path) -> None:
    path = repository / "kept.txt"
    changes = tracker(repository, tmp_path)
    status = path.stat()
    path.write_text("one\nTWO\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert compared(changes) == [ChangedFile("kept.txt", "modified", 1, 1)]


def test_worktrees_are_compared(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    changes = tracker(tmp_path / "tree", tmp_path)
    (tmp_path / "tree/kept.txt").write_text("")
    (repository / "kept.txt").write_text("elsewhere")
    assert compared(changes) == [ChangedFile("kept.txt", "modified", 0, 2)]


def test_names_with_line_breaks_and_unicode(repository: Path, tmp_path: Path) -> None:
    changes = tracker(repository, tmp_path)
    names = ["a\nb.txt", "tab\there.txt", "naïve 日本.txt"]
    for name in names:
        (repository / name).write_text("x\n")
    assert sorted(file.path for file in compared(changes)) == sorted(names)


def test_without_a_repository_the_reports_count(tmp_path: Path) -> None:
    changes = WorkingTreeChanges(str(tmp_path), ENVIRON, tmp_path / "snapshots")
    assert not changes.is_possible
    assert changes.begin() is None
    assert compared(changes, ChangedFile("x", "created")) == [ChangedFile("x", "created")]


def test_damaged_repository_is_a_warning(repository: Path, tmp_path: Path) -> None:
    changes = tracker(repository, tmp_path)
    (repository / ".git/HEAD").unlink()
    files, note = changes.finish([ChangedFile("x", "created")])
    assert files == [ChangedFile("x", "created")]
    assert note is not None
    assert note.startswith("changed files are known from the agent's reports only: git add: fatal: not a git repo")


def test_stopped_run_takes_no_snapshot(repository: Path, tmp_path: Path) -> None:
    changes = WorkingTreeChanges(str(repository), ENVIRON, tmp_path / "snapshots")
    assert changes.begin(lambda: False) is None


# -- reports


def test_reports_of_one_file_are_joined() -> None:
    changes = ReportedChanges("/work")
    for event in (
        FileCreateEvent(*RUN, "/work/new.txt", 3),
        FilePatchEvent(*RUN, "new.txt", DIFF),
        FilePatchEvent(*RUN, "./code.py", DIFF),
        FilePatchEvent(*RUN, "/work/code.py", DIFF),
        FileWriteEvent(*RUN, "/other/file", 5),
        FileCreateEvent(*RUN, "gone.txt", 1),
        FileDeleteEvent(*RUN, "gone.txt"),
        FileDeleteEvent(*RUN, "old.txt"),
        FileDeleteEvent(*RUN, "again.txt"),
        FileCreateEvent(*RUN, "again.txt", 1),
    ):
        changes.observe(event)
    assert changes.files == [
        ChangedFile("../other/file", "modified"),
        ChangedFile("again.txt", "modified"),
        ChangedFile("code.py", "modified", 4, 2),
        ChangedFile("new.txt", "created"),
        ChangedFile("old.txt", "deleted"),
    ]
