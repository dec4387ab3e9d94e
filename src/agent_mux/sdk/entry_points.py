"""Entry points of installed packages, read without `importlib.metadata`, which takes longer to import than to scan."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache, reduce
from importlib import import_module
from typing import Any

_METADATA = (".dist-info", ".egg-info")
_SEPARATORS = re.compile(r"[-_.]+")


def read_entry_points(group: str) -> Mapping[str, str]:
    """Return the entry points of a group by name, as `importlib.metadata` does; each is a text `module:attribute`."""
    return _read_entry_points(group, tuple(sys.path))


def load_entry_point(value: str) -> Any:
    """Return the object that an entry point names. Raises whatever its module raises."""
    module, _, attributes = value.partition("[")[0].partition(":")
    return reduce(getattr, filter(None, attributes.strip().split(".")), import_module(module.strip()))


@lru_cache(maxsize=4)
def _read_entry_points(group: str, path: tuple[str, ...]) -> Mapping[str, str]:
    """Return the entry points of a group. A run needs them several times."""
    if not _is_plain(path):
        from importlib.metadata import entry_points  # noqa: PLC0415  # slow: see the docstring of this module

        return {point.name: point.value for point in entry_points(group=group)}
    header = f"[{group}]"
    return dict(point for text in _entry_point_files(path) if header in text for point in _parse(text, header))


def _is_plain(path: tuple[str, ...]) -> bool:
    """Return whether all packages are in directories: others are in archives or eggs, or have a finder."""
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    return len(finders) <= 1 and not any(entry.endswith(".egg") or os.path.isfile(entry) for entry in path)  # noqa: PTH113


def _entry_point_files(path: tuple[str, ...]) -> Iterator[str]:
    """Yield the content of each `entry_points.txt`. The first distribution of a name hides those that follow."""
    seen = set()
    for directory in path:
        try:
            names = os.listdir(directory or ".")  # noqa: PTH208  # many names, few of which become paths
        except OSError:
            continue
        for name in names:
            if not name.endswith(_METADATA):
                continue
            distribution = _SEPARATORS.sub("-", name.rpartition(".")[0].partition("-")[0]).lower()
            if distribution in seen:
                continue
            seen.add(distribution)
            try:
                with open(f"{directory or '.'}/{name}/entry_points.txt", encoding="utf-8") as file:  # noqa: PTH123
                    yield file.read()
            except OSError:
                continue


def _parse(text: str, header: str) -> Iterator[tuple[str, str]]:
    """Yield names and values in the section with this header."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line
        elif section == header and line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()
