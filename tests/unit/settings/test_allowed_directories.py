"""The allow-list of directories: only paths inside a root are allowed."""

import os
from pathlib import Path

import pytest

from agent_mux.errors import ValidationError
from agent_mux.settings.allowed_directories import AllowedDirectories


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Create the allowed directory `work`, and `secret` next to it."""
    for name in ("work/project/deep", "secret/deep", "work-not"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "work" / "file").write_text("x", "utf-8")
    return tmp_path


@pytest.fixture
def roots(place: Path) -> AllowedDirectories:
    return AllowedDirectories([place / "work"])


def test_the_first_root_is_the_default(roots: AllowedDirectories, place: Path) -> None:
    assert roots.directory() == roots.default == place / "work"


@pytest.mark.parametrize(
    "path", ["project", "./project/", "project/deep/..", "project/../project", "../work/project", "project//."]
)
def test_relative_paths_begin_at_the_first_root(roots: AllowedDirectories, place: Path, path: str) -> None:
    assert roots.directory(path) == place / "work" / "project"


@pytest.mark.parametrize("path", ["..", "../secret", "project/../../secret", "/", "/etc", "../work-not", "../WORK"])
def test_path_outside_is_rejected(roots: AllowedDirectories, path: str) -> None:
    assert not roots.contains(path)
    with pytest.raises(ValidationError, match="allowed: a directory in "):
        roots.directory(path)


def test_error_does_not_reveal_whether_an_outside_path_exists(roots: AllowedDirectories, place: Path) -> None:
    answers = set()
    for name in ("secret", "nothing"):
        with pytest.raises(ValidationError) as caught:
            roots.directory(place / name)
        answers.add(str(caught.value).replace(name, "-"))
    assert len(answers) == 1


@pytest.mark.parametrize("path", ["file", "nothing", "project/nothing", "file/deeper"])
def test_path_that_is_not_a_directory_is_rejected(roots: AllowedDirectories, path: str) -> None:
    assert roots.contains(path)
    with pytest.raises(ValidationError, match="an existing directory"):
        roots.directory(path)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 5000, "~", "$HOME", "project\n"])
def test_invalid_paths_are_rejected(roots: AllowedDirectories, path: str) -> None:
    with pytest.raises(ValidationError) as caught:
        roots.directory(path)
    assert len(str(caught.value)) < 500


def test_links_are_followed_inside_only(roots: AllowedDirectories, place: Path) -> None:
    (place / "work" / "out").symlink_to(place / "secret")
    (place / "work" / "up").symlink_to("../secret/deep")
    (place / "work" / "within").symlink_to("project/deep")
    (place / "work" / "loop").symlink_to("loop")
    assert roots.directory("within") == place / "work" / "project" / "deep"
    for name in ("out", "out/deep", "up", "up/..", "loop"):
        with pytest.raises(ValidationError):
            roots.directory(name)


def test_link_from_outside_to_inside_is_allowed(roots: AllowedDirectories, place: Path) -> None:
    (place / "way-in").symlink_to("work/project")
    assert roots.directory(place / "way-in") == place / "work" / "project"


def test_root_that_is_a_link_is_resolved_once(place: Path) -> None:
    link = place / "link"
    link.symlink_to("work")
    roots = AllowedDirectories([link])
    link.unlink()
    link.symlink_to("secret")
    assert roots.directory() == place / "work"
    with pytest.raises(ValidationError):
        roots.directory(link)


def test_several_roots(place: Path) -> None:
    roots = AllowedDirectories([place / "work" / "project", place / "secret"])
    assert roots.directory(place / "secret" / "deep") == place / "secret" / "deep"
    with pytest.raises(ValidationError):
        roots.directory(place / "work")


@pytest.mark.parametrize("bad", [[], ["nothing"], ["work/file"], ["work", "a\0b"]])
def test_roots_must_be_directories(place: Path, monkeypatch: pytest.MonkeyPatch, bad: list[str]) -> None:
    monkeypatch.chdir(place)
    with pytest.raises(ValidationError, match="roots: got"):
        AllowedDirectories(bad)


@pytest.mark.parametrize("replaced", ["work/project", "work/project/deep", "work"])
def test_link_created_after_the_comparison_is_detected(
    place: Path, monkeypatch: pytest.MonkeyPatch, replaced: str
) -> None:
    """Replace a directory by a link to the outside between resolving and opening."""
    roots, resolve = AllowedDirectories([place / "work"]), os.path.realpath

    def resolved_and_swapped(path: str | os.PathLike[str]) -> str:
        real = resolve(path)
        (place / replaced).rename(place / "moved")
        (place / replaced).symlink_to(place / "secret")
        return real

    monkeypatch.setattr(os.path, "realpath", resolved_and_swapped)
    with pytest.raises(ValidationError, match="an existing directory that can be entered"):
        roots.directory("project/deep")


def test_no_descriptor_is_left_open(roots: AllowedDirectories) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    roots.directory("project/deep")
    with pytest.raises(ValidationError):
        roots.directory("project/nothing")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
