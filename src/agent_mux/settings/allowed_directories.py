"""Allowed directories: an allow-list of directories for runs that are started on behalf of somebody else.

Paths are compared after symbolic links and `..` are resolved. The directory is then opened component by component from
its allowed root, without following links, so that a link created between the comparison and the opening is detected.
A link created later is not: anyone who can write inside a root can replace its directories at any time. The list
restricts where an agent starts to work; it does not confine the agent.
"""

import os
import re
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.settings.options_json import camel

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
_LONGEST_SHOWN = 200  # characters of a path in an error


class AllowedDirectories:
    """A list of root directories. A path is allowed if it is a root or inside one."""

    def __init__(self, directories: Sequence[str | os.PathLike[str]]) -> None:
        """Resolve the roots, once: links in their paths are followed now and not again.

        Raises:
            ValidationError: The list is empty, or an entry is not an existing directory.
        """
        if not directories:
            raise ValidationError([FieldError("roots", [], "at least one directory")])
        self.directories = tuple(_resolve_root(directory) for directory in directories)

    @property
    def default(self) -> Path:
        """The first root: the base of relative paths, and the working directory of runs that name none."""
        return self.directories[0]

    def contains(self, path: str | os.PathLike[str]) -> bool:
        """Return whether a path is inside a root. The path may be of any kind and need not exist."""
        try:
            return self._root_of(self._resolve(path)) is not None
        except (OSError, ValueError):
            return False

    def refusals(self, paths: Mapping[str, str | os.PathLike[str]]) -> list[FieldError]:
        """Return an error for each path outside of the roots. `paths`: by the field that names it."""
        allowed = "a path in " + ", ".join(map(str, self.directories))
        outside = {field: path for field, path in paths.items() if not self.contains(path)}
        return [FieldError(field, os.fsdecode(path)[:_LONGEST_SHOWN], allowed) for field, path in outside.items()]

    def check_named_files(self, options: RunOptions, adapters: AdapterRegistry, requested: Collection[str]) -> None:
        """Check the files that the agent's own use of options names, such as a model that is a script.

        Several agents also take the path of a session file for a session id. The fallbacks of the run have its options
        except the model, and their agents use them in their own way.

        Args:
            options: The resolved options of a run.
            adapters: Finds the adapters of its agent and of its fallbacks.
            requested: The options that the request sets; those of profiles and configuration files are trusted.

        Raises:
            AgentMuxError: AGENT_NOT_FOUND for an agent or a fallback that does not exist.
            ValidationError: A requested option names a file outside of the roots.
        """
        named = {**_session_files(options), **adapters.get(options.agent).named_files(options)}
        for index, fallback in enumerate(options.fallback):
            agent, _, model = fallback.partition(":")
            following = replace(options, agent=agent, model=model or None, fallback=())
            for field, path in adapters.get(agent).named_files(following).items():
                named.setdefault(f"fallback[{index}]" if field == "model" else field, path)
        checked = {_key_of(field): path for field, path in named.items() if _option_of(field) in requested}
        refused = self.refusals(checked)
        if refused:
            raise ValidationError(refused)

    def directory(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Return the real path of an allowed directory.

        Args:
            path: Absolute, or relative to the first root; `~` and variables are not expanded. None: the first root.

        Raises:
            ValidationError: The path is outside the roots, is not a directory, or does not exist. The error for paths
                outside the roots does not reveal whether they exist.
        """
        try:
            real = self._resolve(self.default if path is None else path)
        except (OSError, ValueError) as error:
            raise _refusal(path, "a path that can be resolved") from error
        root = self._root_of(real)
        if root is None:
            raise _refusal(path, "a directory in " + ", ".join(map(str, self.directories)))
        try:
            _open_without_links(root, real)
        except (OSError, ValueError) as error:
            raise _refusal(path, "an existing directory that can be entered") from error
        return real

    def _resolve(self, path: str | os.PathLike[str]) -> Path:
        return Path(os.path.realpath(self.default / path))

    def _root_of(self, real: Path) -> Path | None:
        return next((root for root in self.directories if real.is_relative_to(root)), None)


def _option_of(field: str) -> str:
    """Return the option of a field or of a part of one: `native_options` of `native_options.skills[0]`."""
    return re.split(r"[.\[]", field, maxsplit=1)[0]


def _key_of(field: str) -> str:
    """Return the field as requests in JSON name it: `nativeOptions.skills[0]`."""
    option = _option_of(field)
    return camel(option) + field.removeprefix(option)


def _session_files(options: RunOptions) -> Mapping[str, str]:
    ids = {"session_id": options.session_id, "fork_session_id": options.fork_session_id}
    paths = {name: id_ for name, id_ in ids.items() if id_ is not None and ("/" in id_ or id_.endswith(".jsonl"))}
    return {name: os.path.join(options.working_directory(), path) for name, path in paths.items()}  # noqa: PTH118


def _resolve_root(directory: str | os.PathLike[str]) -> Path:
    try:
        real = Path(os.path.realpath(directory))
        is_directory = real.is_dir()
    except (OSError, ValueError):
        is_directory = False
    if not is_directory:
        raise _refusal(directory, "an existing directory", "roots")
    return real


def _open_without_links(root: Path, real: Path) -> None:
    """Open each directory from the root to `real` without following links. Raises `OSError`."""
    descriptor = os.open(root, _OPEN_DIRECTORY)
    try:
        for name in real.relative_to(root).parts:
            inner = os.open(name, _OPEN_DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        _check_same_directory(os.fstat(descriptor), real)
    finally:
        os.close(descriptor)


def _check_same_directory(opened: os.stat_result, real: Path) -> None:
    """Check that the opened directory is the one that the path resolves to. Raises `NotADirectoryError`."""
    now = real.stat()
    if (opened.st_dev, opened.st_ino) != (now.st_dev, now.st_ino) or not stat.S_ISDIR(now.st_mode):
        raise NotADirectoryError(f"{real} was replaced")


def _refusal(path: str | os.PathLike[str] | None, allowed: str, field: str = "cwd") -> ValidationError:
    received = os.fsdecode(path) if path is not None else None
    return ValidationError([FieldError(field, received if received is None else received[:_LONGEST_SHOWN], allowed)])
