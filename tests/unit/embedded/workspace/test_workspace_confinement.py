"""No path leads out of the workspace, whatever the path is."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.errors import WorkspaceError
from agent_loop.workspace import Workspace

SECRET = b"secret of the world outside"
NAMES = [
    "..",
    ".",
    "",
    "a",
    "b",
    "file",
    "nope",
    "out",
    "out_above",
    "out_file",
    "up",
    "circle",
    "in_absolute",
    "in_file",
    "dangling",
    "pipe",
    "x" * 300,
    "tab\there",
    "dangling_out",
    "back",
]


def made(base: Path) -> Path:
    """A root with every kind of way out, and what must not be reached beside it."""
    root = base / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "file").write_bytes(b"inside")
    (root / "a" / "file").write_bytes(b"inside a")
    (base / "outside").mkdir()
    (base / "outside" / "file").write_bytes(SECRET)
    links = {
        "out": base / "outside",
        "out_above": "../outside",
        "out_file": "../outside/file",
        "up": "..",
        "circle": "circle",
        "in_absolute": root / "a",
        "in_file": "a/file",
        "dangling": "a/made",
        "dangling_out": "../outside/made",
        "a/back": "../out",
        "a/up": "../..",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For reading: all tests share it."""
    return made(tmp_path_factory.mktemp("base").resolve())


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For writing: one test only."""
    return made(tmp_path_factory.mktemp("scratch").resolve())


def outside(base: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(base)): path.read_bytes() if path.is_file() else b""
        for path in base.rglob("*")
        if "root" not in path.relative_to(base).parts
    }


def expressions(root: Path) -> st.SearchStrategy[str]:
    relative = st.lists(st.sampled_from(NAMES), min_size=1, max_size=7).map("/".join)
    begins = st.sampled_from(
        ["", "", "/", f"{root}/", f"{root}/../", f"{root.parent}/outside/", "/proc/self/cwd/", "//"]
    )
    return st.one_of(st.builds(str.__add__, begins, relative), st.text(max_size=20))


@given(data=st.data())
def test_no_path_expression_reads_outside(data: st.DataObject, root: Path) -> None:
    path = data.draw(expressions(root))
    workspace = Workspace(root)
    try:
        content = workspace.read_file(path)
    except WorkspaceError:
        return
    assert content.data != SECRET
    assert content.path.resolve().is_relative_to(root)


@given(data=st.data())
def test_no_path_expression_writes_or_deletes_outside(data: st.DataObject, scratch: Path) -> None:
    root, base = scratch, scratch.parent
    path = data.draw(expressions(root))
    workspace, before = Workspace(root), outside(base)
    links = {
        name: (root / name).readlink() for name in ("out", "out_above", "out_file", "up") if (root / name).is_symlink()
    }
    try:
        written = workspace.write_bytes(path, b"new")
        if written.created:
            workspace.delete(written.name)
    except WorkspaceError:
        pass
    assert outside(base) == before
    assert {name: (root / name).readlink() for name in links} == links


@given(data=st.data())
def test_what_is_listed_and_walked_is_inside(data: st.DataObject, root: Path) -> None:
    path = data.draw(expressions(root))
    workspace = Workspace(root)
    try:
        entries = [*workspace.list(path), *workspace.walk(path)]
    except WorkspaceError:
        return
    for entry in entries:
        parent = root.joinpath(*entry.parts).parent
        assert parent.resolve().is_relative_to(root)
        assert (parent / entry.parts[-1]).lstat().st_size == entry.size


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../outside/file", "leads out of the workspace"),
        ("/etc/passwd", "leads out of the workspace"),
        ("out/file", "leads out of the workspace"),
        ("out_above/file", "leads out of the workspace"),
        ("out_file", "leads out of the workspace"),
        ("a/back/file", "leads out of the workspace"),
        ("up/outside/file", "leads out of the workspace"),
        ("a/../../outside/file", "leads out of the workspace"),
        ("circle", "more than 40 links"),
        ("pipe", "a pipe, a socket or a device"),
        ("a", "a directory, not a file"),
        ("a/nope", "does not exist"),
        ("file/x", "not a directory"),
        ("", "the path is empty"),
        ("a\0b", "NUL"),
        ("x" * 300, "too long"),
        ("x/" * 3000, "characters long"),
        ("\ud800", "no file name can contain"),
    ],
)
def test_errors_name_the_path_and_the_reason(path: str, message: str, root: Path) -> None:
    with pytest.raises(WorkspaceError, match=message):
        Workspace(root).read_bytes(path)


@pytest.mark.parametrize(
    "path", ["in_file", "in_absolute/file", "a/./file", "a/b/../file", "/ROOT/a/file", "in_absolute/b/../file"]
)
def test_links_and_dots_inside_are_followed(path: str, root: Path) -> None:
    workspace = Workspace(root)
    path = path.replace("/ROOT", str(root))
    assert workspace.read_bytes(path) == b"inside a"
    assert workspace.relative(path) == "a/file"
    assert workspace.resolve(path) == root / "a" / "file"


def test_a_device_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The FIFO has no writer: opening it in the ordinary way would never return."""
    os.mkfifo(tmp_path / "pipe")
    opened: list[str] = []
    genuine = os.open

    def spy(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        opened.append(str(path))
        return genuine(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", spy)
    with pytest.raises(WorkspaceError):
        Workspace(tmp_path).read_bytes("pipe")
    assert "pipe" not in opened


def test_root_given_by_a_link_accepts_both_absolute_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    workspace = Workspace(tmp_path / "alias")
    workspace.write_bytes(tmp_path / "alias" / "x", b"1")
    assert workspace.read_bytes(tmp_path / "real" / "x") == b"1"


def test_root_that_is_not_a_directory_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="is not a directory"):
        Workspace(tmp_path / "nope")


def test_no_descriptor_stays_open(root: Path) -> None:
    workspace, before = Workspace(root), len(list(Path("/dev/fd").iterdir()))
    for path in ("a/b/../file", "out/file", "circle", "nope/x", "a/up/x", "file/x", "pipe", "a"):
        for use in (workspace.read_bytes, workspace.list, workspace.stat):
            try:
                use(path)
            except WorkspaceError:
                continue
    list(workspace.walk())
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_writable_paths_are_those_inside_of_directories_for_writing(tmp_path: Path) -> None:
    root = made(tmp_path)
    for name in ("added", "readable"):
        (tmp_path / name).mkdir()
    workspace = Workspace(root, [tmp_path / "readable"], writable=[tmp_path / "added"])
    inside = ["file", "new/file", "a/../file", "in_absolute/new", root / "file", tmp_path / "added" / "new"]
    assert [path for path in inside if not workspace.is_writable(path)] == []
    outside = ["../outside", "out/file", "dangling_out", "/etc/passwd", tmp_path / "readable" / "x", "circle", "a\0b"]
    assert [path for path in outside if workspace.is_writable(path)] == []
