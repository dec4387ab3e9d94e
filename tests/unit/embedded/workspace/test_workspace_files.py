"""Writing, deleting, listing, and directories that may only be read."""

import os
import stat
from pathlib import Path

import pytest

from agent_loop.errors import WorkspaceError
from agent_loop.workspace import Workspace


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_write_creates_missing_directories(tmp_path: Path) -> None:
    written = Workspace(tmp_path).write_bytes("new/deep/file", b"1")
    assert (written.name, written.created) == ("new/deep/file", True)
    assert (tmp_path / "new/deep/file").read_bytes() == b"1"


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o444, 0o664])
def test_a_write_keeps_the_permissions(tmp_path: Path, mode: int) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(mode)
    assert not Workspace(tmp_path).write_bytes("file", b"new").created
    assert mode_of(tmp_path / "file") == mode


def test_write_clears_the_set_user_id_bit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o4755)
    Workspace(tmp_path).write_bytes("file", b"new")
    assert mode_of(tmp_path / "file") == 0o755


def test_a_write_that_fails_leaves_the_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WorkspaceError, match="the disk is full"):
        Workspace(tmp_path).write_bytes("file", b"new")
    assert names_in(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_write_never_goes_through_a_hard_link(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").write_bytes(b"old")
    os.link(tmp_path / "outside", tmp_path / "root" / "file")
    Workspace(tmp_path / "root").write_bytes("file", b"new")
    assert (tmp_path / "outside").read_bytes() == b"old"


def test_write_through_a_link_inside_changes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    written = Workspace(tmp_path).write_bytes("link", b"new")
    assert (written.name, (tmp_path / "target").read_bytes()) == ("target", b"new")
    assert (tmp_path / "link").is_symlink()


def test_directories_and_pipes_are_not_written(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, message in (("dir", "a directory"), ("pipe", "a pipe"), (".", "a directory")):
        with pytest.raises(WorkspaceError, match=message):
            Workspace(tmp_path).write_bytes(name, b"new")


def test_reading_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert Workspace(tmp_path).read_bytes("file", 5) == b"12345"
    with pytest.raises(WorkspaceError, match="larger than 4 bytes"):
        Workspace(tmp_path).read_bytes("file", 4)


def test_delete_removes_the_link_and_not_its_target(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"1")
    (tmp_path / "link").symlink_to("target")
    workspace = Workspace(tmp_path)
    workspace.delete("link")
    assert names_in(tmp_path) == ["target"]
    workspace.delete("target")
    assert workspace.stat("target") is None
    with pytest.raises(WorkspaceError, match="does not exist"):
        workspace.delete("target")


def test_list_returns_kinds_sizes_and_names_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"123")
    (tmp_path / "a").mkdir()
    (tmp_path / "c").symlink_to("/etc")
    os.mkfifo(tmp_path / "d")
    (tmp_path / os.fsdecode(b"e\xff")).write_bytes(b"")
    entries = Workspace(tmp_path).list()
    assert [(entry.name, entry.kind) for entry in entries] == [
        ("a", "directory"), ("b", "file"), ("c", "symlink"), ("d", "other"), ("e\\udcff", "file"),
    ]  # fmt: skip
    assert entries[1].size == 3


@pytest.fixture
def shared(tmp_path: Path) -> Workspace:
    for name in ("root", "skills"):
        (tmp_path / name).mkdir()
    (tmp_path / "skills" / "SKILL.md").write_bytes(b"skill")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "skills")
    return Workspace(tmp_path / "root", readable=[tmp_path / "skills"])


def test_readable_directories_are_read_and_never_written(shared: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "skills" / "SKILL.md"
    assert shared.read_bytes(path) == b"skill"
    assert shared.read_bytes("link/SKILL.md") == b"skill"
    assert shared.relative("link/SKILL.md") == str(path)
    assert [entry.name for entry in shared.walk(tmp_path / "skills")] == [str(path)]
    for target in (path, "link/SKILL.md", tmp_path / "skills" / "new" / "file"):
        with pytest.raises(WorkspaceError):
            shared.write_bytes(target, b"bad")
    with pytest.raises(WorkspaceError, match="is read-only"):
        shared.delete(path)
    assert names_in(tmp_path / "skills") == ["SKILL.md"]
    assert path.read_bytes() == b"skill"


def test_a_readable_directory_is_no_way_out(shared: Workspace, tmp_path: Path) -> None:
    (tmp_path / "skills" / "up").symlink_to("..")
    (tmp_path / "secret").write_bytes(b"secret")
    for path in (tmp_path / "skills" / ".." / "secret", tmp_path / "skills" / "up" / "secret"):
        with pytest.raises(WorkspaceError, match="leads out of the workspace"):
            shared.read_bytes(path)
