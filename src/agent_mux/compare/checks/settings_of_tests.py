"""Settings of tests in files that also hold ordinary settings: `pyproject.toml`, `setup.cfg`, `package.json`, ...

An agent may add a dependency to such a file, but not decide with it how the checks run. `with_test_settings` returns
the file of a trial with the test settings of the start; everything else keeps its bytes. A file that does not parse
afterwards, or that parsers could read in different ways, is taken from the start as a whole.
"""

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from agent_mux.sdk.documents import FieldPath, Format, field_name, with_field, without_field

WHOLE = "all of it"
"""Named instead of settings if a file was taken from the start as a whole."""
MAX_FILE = 1 << 20  # bytes; a larger file is taken from the start as a whole
_TASKS = ("test*", "pretest*", "posttest*")
_TOML: Sequence[FieldPath] = (
    ("tool", "pytest"), ("tool", "pytest-*"), ("tool", "coverage"), ("tool", "tox"), ("tool", "nox"),
    ("tool", "unittest"), ("tool", "hatch", "envs", "hatch-test"), ("tool", "setuptools", "*", "pytest11"),
    ("project", "entry-points", "pytest11"), ("tool", "poetry", "plugins", "pytest11"),
    *(("tool", *runner, task) for task in _TASKS for runner in (
        ("poe", "tasks"), ("pdm", "scripts"), ("taskipy", "tasks"), ("pixi", "tasks"),
        ("hatch", "envs", "*", "scripts"),
    )),
)  # fmt: skip
_SETTINGS: Mapping[str, tuple[Format, Sequence[FieldPath]]] = {
    "pyproject.toml": ("toml", _TOML),
    "Cargo.toml": ("toml", (("test",), ("profile", "test"), ("lib", "test"), ("lib", "harness"), ("lib", "doctest"))),
    "package.json": (
        "json",
        (
            *((tool,) for tool in ("jest", "mocha", "vitest", "ava", "nyc", "c8", "tap", "jasmine", "playwright")),
            *(("scripts", task) for task in _TASKS),
        ),
    ),
    "composer.json": ("json", tuple(("scripts", task) for task in _TASKS)),
    "deno.json": ("json", (("test",), *(("tasks", task) for task in _TASKS))),
}
"""By the name of a file: its format, and where settings of tests are; parts are patterns of `fnmatch`."""
_SECTIONS = (
    "tool:pytest", "pytest", "coverage:*", "tox", "tox:*", "tool:tox", "testenv", "testenv:*", "nosetests",
    "tool:nosetests", "unittest", "test", "aliases",
)  # fmt: skip
"""Sections of `setup.cfg` with settings of tests."""
_HEADER = re.compile(r"\[([^\[\]]*)\]")

NAMES = (*_SETTINGS, "setup.cfg")
"""Names of the files, wherever they are."""


def with_test_settings(name: str, start: bytes | None, end: bytes | None) -> tuple[bytes | None, tuple[str, ...]]:
    """Return a file with the test settings of the start, and the names of those that a trial had changed.

    Args:
        name: Name of the file without its directory, one of `NAMES`.
        start: Its content in the start; None: it did not exist.
        end: Its content after the trial; None: it does not exist any more, or cannot be read.

    Returns:
        The content (None: no file) and what was restored: settings, or `WHOLE`. Settings of a start that does not parse
        cannot be distinguished from other settings: its file keeps the content of the trial.
    """
    settings = _settings_of(name)
    try:
        before = {} if start is None else settings(start.decode("utf-8"))
    except Exception:  # noqa: BLE001  # whatever the parsers raise, also for what is nested deeply
        return end, ()
    if end is None:
        return (start, (WHOLE,)) if before else (None, ())
    try:
        return _restored(name, settings, start, end, before)
    except Exception:  # noqa: BLE001  # as above: a file that an agent broke decides nothing
        return start, (WHOLE,)


def _restored(
    name: str, settings: "Callable[[str], _Settings]", start: bytes | None, end: bytes, before: "_Settings"
) -> tuple[bytes | None, tuple[str, ...]]:
    if len(end) > MAX_FILE:
        return start, (WHOLE,)
    text = end.decode("utf-8")
    after = settings(text)
    changed = [path for path in {**before, **after} if not _equal(before, after, path)]
    if not changed:
        return end, ()
    restored = _restore(name, "" if start is None else start.decode("utf-8"), text, before, changed)
    found = settings(restored)
    if any(not _equal(before, found, path) for path in {**before, **found}):
        return start, (WHOLE,)
    return restored.encode("utf-8"), tuple(sorted(map(_title, changed)))


_Settings = Mapping[FieldPath, Any]


def _settings_of(name: str) -> Callable[[str], _Settings]:
    if name == "setup.cfg":
        return _sections
    form, patterns = _SETTINGS[name]
    parse: Callable[[str], Any] = tomllib.loads if form == "toml" else json.loads

    def settings(text: str) -> _Settings:
        data = parse(text)
        return {path: value for pattern in patterns for path, value in _find(data, pattern)}

    return settings


def _find(data: Any, pattern: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    """Yield the fields that match a pattern, with their values."""
    if not pattern:
        yield (), data
    elif isinstance(data, dict):
        for key, value in data.items():
            if fnmatchcase(key, pattern[0]):
                yield from (((key, *rest), found) for rest, found in _find(value, pattern[1:]))


def _equal(before: _Settings, after: _Settings, path: FieldPath) -> bool:
    if path not in before or path not in after:
        return False
    # As text, because 1 == True in Python.
    return _text(before[path]) == _text(after[path])


def _text(value: Any) -> str:
    return json.dumps(value, default=repr, sort_keys=True)


def _restore(name: str, start: str, end: str, before: _Settings, changed: Sequence[FieldPath]) -> str:
    if name == "setup.cfg":
        return _restore_sections(start, end)
    form = _SETTINGS[name][0]
    for path in changed:
        end = with_field(end, form, path, before[path]) if path in before else without_field(end, form, path)
    return end


def _title(path: FieldPath) -> str:
    return f"[{path[1]}]" if path[:1] == ("",) else field_name(path)


def _sections(text: str) -> _Settings:
    """Return the test sections of an INI file, by ("", name). Raises `configparser.Error`."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    found: dict[FieldPath, Any] = {
        ("", name): dict(parser.items(name)) for name in parser.sections() if _is_of_tests(name)
    }
    # Parsers differ in what they take as a header: compare the lines as well.
    for name, part in _split(text):
        if _is_of_tests(name):
            found["", name] = [found.get(("", name)), part.strip()]
    return found


def _is_of_tests(section: str) -> bool:
    return any(fnmatchcase(section.strip(), pattern) for pattern in _SECTIONS)


def _split(text: str) -> list[tuple[str, str]]:
    """Return the sections of an INI file with their lines; the first has no name and may be empty."""
    parts: list[tuple[str, str]] = [("", "")]
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        if header is not None:
            parts.append((header[1], line))
        else:
            parts[-1] = (parts[-1][0], parts[-1][1] + line)
    return parts


def _restore_sections(start: str, end: str) -> str:
    """Return an INI file with the test sections of another one: each where it was, the missing ones at the end."""
    wanted: dict[str, str] = {}
    for name, part in _split(start):
        if _is_of_tests(name):
            wanted[name] = wanted.get(name, "") + part
    kept = []
    for name, part in _split(end):
        kept.append(wanted.pop(name, "") if _is_of_tests(name) else part)
    return "".join(_lines(part) for part in (*kept, *wanted.values()))


def _lines(part: str) -> str:
    return part if not part or part.endswith(("\n", "\r")) else f"{part}\n"
