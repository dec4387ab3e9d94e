"""The version of a program without starting it: from its npm package, or as it was last detected."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from agent_mux.process.installed_version import CACHE, installed_version, remember_version


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_MUX_CACHE_DIR", str(tmp_path / "own"))
    return tmp_path / "own"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "wombat"
    path.write_text("one")
    return path


def modes_in(directory: Path) -> set[tuple[bool, int]]:
    """Return for each file and directory below whether it is a directory, and its permissions."""
    return {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in directory.rglob("*")}


def package(directory: Path, program: str, **fields: object) -> Path:
    """Create an npm package with one program; return the link to it, as npm creates it."""
    path = directory / "node_modules" / "wombat" / program
    path.parent.mkdir(parents=True)
    path.write_text("#!/usr/bin/env node\n")
    manifest = {"name": "wombat", "version": "1.2.3", "bin": {"wombat": program}, **fields}
    (directory / "node_modules" / "wombat" / "package.json").write_text(json.dumps(manifest))
    link = directory / "wombat"
    link.symlink_to(path)
    return link


def test_program_of_an_npm_package_has_its_version(tmp_path: Path) -> None:
    assert installed_version(str(package(tmp_path, "bin/wombat.js"))) == "1.2.3"
    assert installed_version(str(package(tmp_path / "other", "cli.js", bin="cli.js"))) == "1.2.3"


def test_program_that_a_package_under_development_lists_has_its_version(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "wombat", "version": "1.2.3", "bin": "cli.js"}')
    for name, version in (("cli.js", "1.2.3"), ("other.js", None)):
        (tmp_path / name).write_text("#!/usr/bin/env node\n")
        assert installed_version(str(tmp_path / name)) == version


@pytest.mark.parametrize("version", ["1.2.3", "1.2.3-linux-x64"])
def test_binary_that_the_command_of_a_package_starts_has_its_version(tmp_path: Path, version: str) -> None:
    package(tmp_path, "bin/wombat.js", version=version)
    binary = tmp_path / "node_modules" / "wombat" / "vendor" / "linux" / "wombat"
    binary.parent.mkdir(parents=True)
    binary.write_text("")
    assert installed_version(str(binary)) == "1.2.3"


def test_program_in_the_modules_of_a_project_does_not_have_the_version_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "project", "version": "9.9.9", "bin": {"wombat": "w.js"}}')
    shim = tmp_path / "node_modules" / ".bin" / "wombat"
    shim.parent.mkdir(parents=True)
    shim.write_text("#!/bin/sh\n")
    assert installed_version(str(shim)) is None


@pytest.mark.parametrize("content", ["", "[]", '{"name": 1}', '{"name": "w", "version": "x", "bin": {"w": 1}}'])
def test_damaged_package_has_no_version(tmp_path: Path, content: str) -> None:
    link = package(tmp_path, "wombat.js")
    (tmp_path / "node_modules" / "wombat" / "package.json").write_text(content)
    assert installed_version(str(link)) is None


def test_detected_version_holds_until_the_file_changes(tmp_path: Path) -> None:
    program = tmp_path / "wombat"
    program.write_text("one")
    assert installed_version(str(program)) is None
    remember_version(str(program), "2.0.0")
    assert installed_version(str(program)) == "2.0.0"
    program.write_text("another")
    assert installed_version(str(program)) is None


def test_programs_that_are_gone_are_forgotten(tmp_path: Path, own_directory: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).write_text(name)
        remember_version(str(tmp_path / name), "1.0.0")
        if name == "old":
            (tmp_path / name).unlink()
    assert list(json.loads((own_directory / CACHE).read_text())) == [os.path.realpath(tmp_path / "new")]


def test_damaged_cache_is_replaced(tmp_path: Path, own_directory: Path) -> None:
    program = tmp_path / "wombat"
    program.write_text("one")
    (own_directory / CACHE).parent.mkdir(parents=True)
    (own_directory / CACHE).write_text("{")
    assert installed_version(str(program)) is None
    remember_version(str(program), "2.0.0")
    assert installed_version(str(program)) == "2.0.0"


def test_cache_that_cannot_be_written_is_no_error(tmp_path: Path, own_directory: Path) -> None:
    program = tmp_path / "wombat"
    program.write_text("one")
    own_directory.write_text("a file in place of the directory")
    remember_version(str(program), "2.0.0")
    assert installed_version(str(program)) is None


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME", "AGENT_MUX_CACHE_DIR", "AGENT_MUX_CONFIG_DIR"])
def test_cache_is_private_and_where_the_platform_has_caches(
    tmp_path: Path, program: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "AGENT_MUX_CACHE_DIR", "AGENT_MUX_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(variable, str(tmp_path / "home"))
    (tmp_path / "home").mkdir(mode=0o755)
    below = {"HOME": ".cache/agent-mux", "XDG_CACHE_HOME": "agent-mux", "AGENT_MUX_CONFIG_DIR": "cache"}
    remember_version(str(program), "2.0.0")
    assert installed_version(str(program)) == "2.0.0"
    files = [path.relative_to(tmp_path / "home") for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert files == [Path(below.get(variable, "")) / CACHE]
    assert modes_in(tmp_path / "home") <= {(True, 0o700), (False, 0o600)}


def test_cache_of_another_user_is_neither_written_nor_read(
    program: Path, own_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_version(str(program), "2.0.0")
    monkeypatch.setattr(os, "geteuid", lambda: program.stat().st_uid + 1)
    assert installed_version(str(program)) is None
    (own_directory / CACHE).unlink()
    remember_version(str(program), "2.0.0")
    assert list(own_directory.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into every directory")
def test_home_that_is_read_only_is_no_error(program: Path, own_directory: Path) -> None:
    own_directory.mkdir(mode=0o500)
    remember_version(str(program), "2.0.0")
    assert installed_version(str(program)) is None


def test_user_without_a_home_directory_has_no_cache(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_MUX_CACHE_DIR")
    monkeypatch.delenv("AGENT_MUX_CONFIG_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    remember_version(str(program), "2.0.0")
    assert installed_version(str(program)) is None
