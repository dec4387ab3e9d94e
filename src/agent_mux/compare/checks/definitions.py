"""The definitions of checks: `[[check]]` tables of a task file, and commands given by `--check`.

    kind      key        passes if
    command   command    a program ends with the expected exit code, and its JUnit report has no failure
    file      file       assertions about one file hold: exists, absent, contains, matches, unchanged
    schema    schema     the run's structured output, or a JSON file, matches a JSON Schema
    python    python     a function returns without an objection

A definition in plain values (`to_plain`) is complete: schemas are part of it, and directories are absolute.
"""

import importlib.metadata
import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from agent_mux._util.suggestions import did_you_mean
from agent_mux.compare.checks.schemas import problem_of_schema
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.checked import Checked

PYTHON_GROUP = "agent_mux.checks"
"""Entry-point group of functions that are checks."""
COMMAND_TIMEOUT = 600.0  # seconds: a large test suite
OTHER_TIMEOUT = 60.0  # seconds
MAX_TIMEOUT = 86_400.0  # seconds
MAX_SCHEMA = 1 << 20  # bytes of a schema file
_SHELL_OPERATORS = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "<<", "2>", "2>&1", "&>"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_REPORT_FLAGS = ("--junitxml", "--junit-xml")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class _Definition(Checked, msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the definitions of all kinds of checks have."""

    name: str = ""
    """Unique among the checks of a comparison."""
    timeout: float = OTHER_TIMEOUT
    """Seconds."""


class CommandCheck(_Definition, frozen=True, kw_only=True):
    """A program that ends with the expected exit code. It runs without a shell."""

    command: tuple[str, ...]
    timeout: float = COMMAND_TIMEOUT
    exit_code: int = 0
    junit: str | None = None
    """JUnit report that the program writes, relative to the checkout."""


class FileCheck(_Definition, frozen=True, kw_only=True):
    """Assertions about one file, of which all must hold."""

    file: str
    """Relative to the checkout."""
    exists: bool = False
    absent: bool = False
    contains: str | None = None
    matches: str | None = None
    """Regular expression that is found somewhere in the text; `^` and `$` match at every line."""
    unchanged: bool = False
    """Whether the trial may not change, create or delete the file."""


class SchemaCheck(_Definition, frozen=True, kw_only=True):
    """A JSON Schema for the structured output of the run, or for a JSON file."""

    schema: dict[str, Any]
    file: str | None = None
    """Relative to the checkout; None: the structured output."""


class PythonCheck(_Definition, frozen=True, kw_only=True):
    """A Python function, called with a `CheckContext` in a process of its own."""

    python: str
    """`module:function`, or a name in the entry-point group `agent_mux.checks`."""
    arguments: dict[str, Any] = {}
    """Values for `CheckContext.arguments`."""
    directory: str = ""
    """Absolute path of the directory from which modules are imported first."""


CheckDefinition = CommandCheck | FileCheck | SchemaCheck | PythonCheck
_KINDS: Mapping[str, type[CheckDefinition]] = {
    "command": CommandCheck,
    "schema": SchemaCheck,
    "python": PythonCheck,
    "file": FileCheck,
}
"""By the key that states the kind; `file` also occurs in another kind and is therefore last."""


def read_checks(tables: Sequence[Any], *, where: str, directory: Path) -> tuple[CheckDefinition, ...]:
    """Read the `[[check]]` tables of a task file, or the definitions in plain values of a plan.

    Args:
        tables: The tables.
        where: The file that contains them, for errors.
        directory: Absolute path: schema files and modules are found relative to it.

    Raises:
        AgentMuxError: VALIDATION_ERROR for the first mistake, with its place and the next step.
    """
    checks = tuple(
        _read_table(table, _Place(f"{where}: check {number}", directory)) for number, table in enumerate(tables, 1)
    )
    require_unique_names(checks)
    return checks


def read_command(text: str) -> CommandCheck:
    """Read the command of `--check`, which is split as a shell splits it, without a shell.

    Raises:
        AgentMuxError: VALIDATION_ERROR if the command is empty, not quoted correctly, or needs a shell.
    """
    return _command(CommandCheck(command=_split(text, f"--check {text!r}")), f"--check {text!r}")


def require_unique_names(checks: Sequence[CheckDefinition]) -> None:
    """Raise VALIDATION_ERROR if two checks have the same name: results are identified by it."""
    repeated = [name for name, number in Counter(check.name for check in checks).items() if number > 1]
    if repeated:
        raise _invalid(f"two checks have the name {repeated[0]!r}; remove one, or give each its own `name`")


def to_plain(checks: Sequence[CheckDefinition]) -> tuple[dict[str, Any], ...]:
    """Return the definitions in plain values, from which `read_checks` returns equal ones."""
    return tuple(msgspec.to_builtins(check) for check in checks)


class _Place(msgspec.Struct, frozen=True):
    """Where a definition stands, and the directory to which its paths are relative."""

    where: str
    directory: Path


def _read_table(table: Any, place: _Place) -> CheckDefinition:
    if not isinstance(table, Mapping):
        raise _invalid(f'{place.where} is not a table; write [[check]] with keys such as command = "pytest -q"')
    if isinstance(table.get("name"), str) and table["name"]:
        place = _Place(f"{place.where} ({table['name']})", place.directory)
    kind = next((key for key in _KINDS if key in table), None)
    if kind is None:
        found = f"; {table_key!r} is not one of them" if (table_key := next(iter(table), None)) else ""
        raise _invalid(f"{place.where} states no kind: give one of the keys {', '.join(_KINDS)}{found}")
    known = _KINDS[kind].__struct_fields__
    for key in table:
        if key not in known:
            hint = did_you_mean(key, known, f"a {kind} check has the keys {', '.join(known)}")
            raise _invalid(f"{place.where}: unknown key {key!r}; {hint}")
    values = dict(table)
    if kind == "command" and isinstance(values["command"], str):
        values["command"] = _split(values["command"], place.where)
    if kind == "schema" and isinstance(values["schema"], str):
        values["schema"] = _load_schema(values["schema"], place)
    if kind == "python":
        values["directory"] = str(place.directory / values.get("directory", ""))
    try:
        check: CheckDefinition = msgspec.convert(values, _KINDS[kind])
    except msgspec.ValidationError as error:
        raise _invalid(f"{place.where}: {_plain_words(error)}") from error
    return _validate(check, place.where)


def _validate(check: CheckDefinition, where: str) -> CheckDefinition:
    if not (0 < check.timeout <= MAX_TIMEOUT and math.isfinite(check.timeout)):
        raise _invalid(f"{where}: timeout is {check.timeout:g}; give seconds above 0 and up to {MAX_TIMEOUT:g}")
    match check:
        case CommandCheck():
            return _command(check, where)
        case FileCheck():
            return _file(check, where)
        case SchemaCheck():
            return _schema(check, where)
        case PythonCheck():
            return _python(check, where)


def _command(check: CommandCheck, where: str) -> CommandCheck:
    if not check.command or not check.command[0]:
        raise _invalid(f"{where}: the command is empty; name a program")
    if any("\0" in word for word in check.command):
        raise _invalid(f"{where}: the command contains a null character; remove it")
    if _ASSIGNMENT.match(check.command[0]):
        raise _invalid(f"{where}: {check.command[0]!r} is not a program; to set a variable, begin with `env`")
    junit = check.junit if check.junit is not None else _report_in(check.command)
    if junit is not None:
        _require_inside(junit, "junit", where)
    return msgspec.structs.replace(check, name=check.name or shlex.join(check.command), junit=junit)


def _report_in(command: Sequence[str]) -> str | None:
    """Return the JUnit report that an argument names, if it is in the checkout."""
    for number, word in enumerate(command):
        flag, equals, value = word.partition("=")
        if flag in _REPORT_FLAGS:
            path = value if equals else "".join(command[number + 1 : number + 2])
            return path if _is_inside(path) else None
    return None


def _file(check: FileCheck, where: str) -> FileCheck:
    _require_inside(check.file, "file", where)
    found = [key for key in ("exists", "absent", "contains", "matches", "unchanged") if _is_asserted(check, key)]
    if not found:
        raise _invalid(f"{where}: nothing is asserted about {check.file}; add for example exists = true")
    if check.absent and found != ["absent"]:
        raise _invalid(f"{where}: `absent` cannot be combined with `{next(key for key in found if key != 'absent')}`")
    if check.matches is not None:
        try:
            re.compile(check.matches)
        except (re.error, RecursionError, OverflowError) as error:
            raise _invalid(f"{where}: `matches` is not a regular expression: {error}; correct the pattern") from error
    return msgspec.structs.replace(check, name=check.name or f"{check.file}: {', '.join(found)}")


def _is_asserted(check: FileCheck, key: str) -> bool:
    return getattr(check, key) not in {None, False}


def _schema(check: SchemaCheck, where: str) -> SchemaCheck:
    if check.file is not None:
        _require_inside(check.file, "file", where)
    problem = problem_of_schema(check.schema)
    if problem is not None:
        raise _invalid(f"{where}: the schema is not a valid JSON Schema: {problem}; correct it")
    return msgspec.structs.replace(check, name=check.name or f"schema of {check.file or 'the structured output'}")


def _python(check: PythonCheck, where: str) -> PythonCheck:
    if ":" in check.python:
        if not _TARGET.fullmatch(check.python):
            raise _invalid(f'{where}: {check.python!r} is not a function; write python = "module:function"')
    else:
        known = {point.name for point in importlib.metadata.entry_points(group=PYTHON_GROUP)}
        if check.python not in known:
            names = f"known: {', '.join(sorted(known))}" if known else 'write python = "module:function"'
            hint = did_you_mean(check.python, known, names)
            raise _invalid(f"{where}: no entry point {check.python!r} in the group {PYTHON_GROUP}; {hint}")
    return msgspec.structs.replace(check, name=check.name or check.python)


def _split(text: str, where: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise _invalid(f"{where}: {error}; correct the quotes") from error
    for word in words:
        if word in _SHELL_OPERATORS or (word.endswith(";") and word != ";"):
            raise _invalid(f"{where}: {word!r} needs a shell, and none is run; write `sh -c '...'`")
    return words


def _load_schema(name: str, place: _Place) -> dict[str, Any]:
    path = place.directory / Path(os.path.expanduser(name))
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SCHEMA + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise _invalid(f"{place.where}: the schema {path} cannot be read: {reason}; correct the path") from error
    if len(content) > MAX_SCHEMA:
        raise _invalid(f"{place.where}: the schema {path} is larger than {MAX_SCHEMA} bytes; shorten it")
    try:
        schema: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _invalid(f"{place.where}: the schema {path} is not JSON: {error}; correct it") from error
    if not isinstance(schema, dict):
        raise _invalid(f"{place.where}: the schema {path} is not a JSON object; correct it")
    return schema


def _require_inside(path: str, key: str, where: str) -> None:
    if not _is_inside(path):
        raise _invalid(f"{where}: {key} is {path!r}; give a path relative to the checkout, without `..`")


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path


def _plain_words(error: msgspec.ValidationError) -> str:
    """Return the message of msgspec in the words of the task file."""
    what, _, place = str(error).partition(" - at ")
    key = place.strip("`").removeprefix("$.")
    return f"{key}: {what[:1].lower()}{what[1:]}" if key else what


def _invalid(message: str) -> AgentMuxError:
    return AgentMuxError("VALIDATION_ERROR", message)
