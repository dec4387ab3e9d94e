"""Walks, .gitignore, and patterns of names."""

import resource
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.errors import ToolError, WorkspaceError
from agent_loop.workspace import Glob, IgnoreFiles, Workspace, workspace


def made(root: Path, *names: str) -> Workspace:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    return Workspace(root)


def names(workspace: Workspace, path: str = ".") -> list[str]:
    return [entry.name for entry in workspace.walk(path)]


def test_walk_omits_ignored_files_and_the_git_directory(tmp_path: Path) -> None:
    workspace = made(tmp_path, ".git/config", "a.log", "keep.log", "build/x", "src/build/y", "src/z.py", ".github/w")
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\n/build/\n\n# a comment\n!\n")
    assert names(workspace) == [".github/w", ".gitignore", "keep.log", "src/build/y", "src/z.py"]


def test_the_nearest_gitignore_decides(tmp_path: Path) -> None:
    workspace = made(tmp_path, "a/x.tmp", "b/x.tmp")
    (tmp_path / ".gitignore").write_text("*.tmp\n.gitignore\n")
    (tmp_path / "a" / ".gitignore").write_text("!x.tmp\n")
    assert names(workspace) == ["a/x.tmp"]


def test_ignored_directory_is_walked_if_it_is_named(tmp_path: Path) -> None:
    workspace = made(tmp_path, "node_modules/pkg/index.js", "node_modules/pkg/out.log")
    (tmp_path / ".gitignore").write_text("node_modules/\n*.log\n")
    assert names(workspace) == [".gitignore"]
    assert names(workspace, "node_modules/pkg") == ["node_modules/pkg/index.js"]


@pytest.mark.parametrize(
    "rules",
    [
        "*.log\n",
        "/a\n",
        "a/\n",
        "a/*\n!a/b.txt\n",
        "**/c\n",
        "a/**\n",
        "*\n!*/\n!*.txt\n",
        "\\#x\n",
        "x y\n",
        "a/**/d.txt\n",
        "[^a]\n",
        "x\\ y\n",
        "h  \n",
        "c\n!c/e.txt\n",
        "a/c/\n",
        "/*\n!/a\n",
        "**\n!*/\n",
        "b\\*\n",
        "h\\\n",
        "/\n",
    ],
)
def test_a_walk_sees_what_git_sees(tmp_path: Path, rules: str) -> None:
    """git itself is the judge."""
    workspace = made(tmp_path, "a/b.txt", "a/c/d.txt", "c/e.txt", "f.log", "a/g.log", "#x", "x y", "h")
    (tmp_path / ".gitignore").write_text(rules)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    listed = subprocess.run(
        ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tmp_path, check=True, capture_output=True,
    ).stdout.decode()  # fmt: skip
    assert sorted(names(workspace)) == sorted(filter(None, listed.split("\0")))


def test_hidden_files_of_a_search_are_judged_with_their_directories(tmp_path: Path) -> None:
    workspace = made(tmp_path, "a/b/c")
    (tmp_path / ".gitignore").write_text("b/\n")
    ignored = IgnoreFiles(workspace, tmp_path)
    assert ignored.hides(("a", "b", "c"), below=0)
    assert not ignored.hides(("a", "b", "c"), below=2)
    assert ignored.hides((".git", "config"), below=0)


def test_links_are_not_walked(tmp_path: Path) -> None:
    workspace = made(tmp_path, "a/x")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "file").symlink_to("a/x")
    assert names(workspace) == ["a/x"]


def test_a_deep_tree_is_walked_to_its_end(tmp_path: Path) -> None:
    """Deeper than the number of files that may be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    workspace = Workspace(tmp_path)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 50, hard))
    try:
        workspace.write_bytes("d/" * 150 + "x", b"1")
        depths = [len(entry.parts) for entry in workspace.walk()]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert depths == [151]


def test_walk_of_too_many_entries_raises_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "MAX_VISITED", 2)
    with pytest.raises(WorkspaceError, match="more than 2 entries"):
        names(made(tmp_path, "a", "b", "c"))


def test_a_walk_is_stopped_by_its_check(tmp_path: Path) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(made(tmp_path, "a/b").walk(check=stop))


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "a/b.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/**/*.py", "src/b.py", True),
        ("src/**/*.py", "src/a/c/b.py", True),
        ("**", "a", True),
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("/a", "a", True),
        ("/a", "b/a", False),
        ("*.{ts,tsx}", "x.tsx", True),
        ("{a,b}/c", "b/c", True),
        ("[ab]", "a", True),
        ("[!ab]", "a", False),
        ("a?", "ab", True),
        ("A", "a", False),
        ("**/x/**/y", "x/y", True),
        ("**/x/**/y", "q/x/z/y", True),
        ("**/x/**/y", "q/y", False),
        ("./a/b", "a/b", True),
    ],
)
def test_patterns(pattern: str, path: str, *, fits: bool) -> None:
    assert Glob(pattern).matches(tuple(path.split("/"))) is fits


@given(parts=st.lists(st.sampled_from(["a", "b", "c.py"]), min_size=1, max_size=6))
def test_two_stars_stand_for_any_directories(parts: list[str]) -> None:
    assert Glob("**/" + parts[-1]).matches(tuple(parts))
    assert Glob(parts[0] + "/**/" + parts[-1]).matches(tuple(parts)) is (len(parts) > 1)


def test_a_hostile_pattern_ends(tmp_path: Path) -> None:
    """One expression for the whole path would take longer than the world has been there."""
    assert not Glob("**/" * 300 + "*a" * 30 + "b").matches(("a" * 200,) * 50)
    for pattern in ("{a,b}" * 20, "", "/", "x" * 2000):
        with pytest.raises(ToolError):
            Glob(pattern)
