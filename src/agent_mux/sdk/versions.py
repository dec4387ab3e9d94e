"""Versions of agents' programs, compared with the versions that recordings cover."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

VersionState = Literal["tested", "in_range", "unknown"]
"""`tested`: recordings cover this version. `in_range`: they cover an older and a newer one. `unknown`: neither."""

_VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-.][0-9A-Za-z.-]+)?|\d+\.\d+")


def find_version(text: str) -> str | None:
    """Return the first version in a text, such as the output of `--version` or a user agent; None without one."""
    match = _VERSION.search(text)
    return match.group() if match else None


def version_key(version: str) -> tuple[int, ...]:
    """Return a version as numbers to compare: `2.1.330-beta` as (2, 1, 330)."""
    return tuple(int(part) for part in version.partition("-")[0].split(".") if part.isdigit())


def sorted_versions(versions: Iterable[str]) -> tuple[str, ...]:
    """Return the versions without repetitions, oldest first."""
    return tuple(sorted(set(versions), key=version_key))


def state_of(version: str | None, tested: Sequence[str]) -> VersionState:
    """Return the state of a version. `tested` is sorted, oldest first."""
    if version is None or not tested:
        return "unknown"
    if version in tested:
        return "tested"
    is_within = version_key(tested[0]) <= version_key(version) <= version_key(tested[-1])
    return "in_range" if is_within else "unknown"


def is_older(version: str, tested: Sequence[str]) -> bool:
    """Return whether a version is older than all tested ones. `tested` is sorted, oldest first."""
    return bool(tested) and version_key(version) < version_key(tested[0])


def range_of(tested: Sequence[str]) -> str:
    """Return the tested range for people: `1.2.27 to 1.18.33`."""
    return " to ".join(dict.fromkeys((tested[0], tested[-1])))


def describe_state(program: str, version: str, tested: Sequence[str], *, agent: str) -> str:
    """Return the state of a version in a sentence, with the next step where there is one."""
    match state_of(version, tested):
        case "tested":
            return f"{program} {version} is a tested version"
        case "in_range":
            return f"{program} {version} is within the tested range, {range_of(tested)}"
    if is_older(version, tested):
        return f"{program} {version} is older than the tested range, {range_of(tested)}; update it: amux update {agent}"
    return f"{program} {version} is newer than the tested range, {range_of(tested)}; if output is missing, update amux"
