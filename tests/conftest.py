"""Settings of all tests: signals, umask, standard streams, slow doubles, hypothesis profiles, garbage collection."""

import gc
import os
import signal
import zlib
from collections import defaultdict
from collections.abc import Container, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.missing_extras import pytest_fixture_setup, pytest_make_collect_report, pytest_pyfunc_call

__all__ = ("pytest_fixture_setup", "pytest_make_collect_report", "pytest_pyfunc_call")

HERE = Path(__file__).parent
INTERPRETERS_OWN = {signal.SIGINT: signal.default_int_handler}
"""Signals whose default in Python is not the system's."""
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    # `nohup` ignores SIGHUP, a background job of a shell SIGINT and SIGQUIT, and child processes inherit that.
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, INTERPRETERS_OWN.get(ignored, signal.SIG_DFL))

os.umask(0o022)  # tests check the modes of files that others may read

# Without the three standard descriptors, the next file or pipe that is opened would become one of them.
while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
    os.set_inheritable(descriptor, True)
os.close(descriptor)

# No deadlines: a busy machine must not fail a test.
settings.register_profile("quick", max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("sample", settings.get_profile("quick"), max_examples=50)
settings.register_profile("full", settings.get_profile("quick"), max_examples=200)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=1_000)
settings.load_profile(os.environ.get("AMUX_PROPERTIES", "quick"))

DOUBLES = ("anyio_backend", "make_client", "database_url")
"""Parameters that run the same test again: on another event loop, with another client, with another database."""
NO_PARAMETERS = SimpleNamespace(params={})
FAST_CASES = {"unit": 2, "conformance": 2, "process": 1, "service": 1}
"""How many cases of a parametrized test are in the fast suite; all of those in other directories."""
SAMPLE = {"unit": 12, "conformance": 12, "process": 0, "service": 0}
"""How many repetitions of a parametrized test (other cases and variants) CI runs; the others are `exhaustive`."""


def pytest_configure(config: pytest.Config) -> None:
    """Use an empty home directory. Installed agents are still found in the user's."""
    os.environ.setdefault("AMUX_AGENT_CACHE", str(Path("~/.cache/agent-mux/agents").expanduser()))
    home = TemporaryDirectory(prefix="amux-home-", ignore_cleanup_errors=True)
    config.add_cleanup(home.cleanup)
    os.environ["HOME"] = home.name
    os.environ.pop("XDG_CACHE_HOME", None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all runs of a test as `slow` but one variant of a few cases, and those beyond a sample as `exhaustive`.

    The chosen cases of a test are spread evenly. Each test begins with another case and another variant, so that the
    fast tests include all variants. `all_cases` marks tests whose cases are all fast.
    """
    tests: dict[str, dict[Any, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        parameters = getattr(item, "callspec", NO_PARAMETERS).params
        # Variants of a case share the other parameters: the same objects.
        others = frozenset((name, id(value)) for name, value in parameters.items() if name not in DOUBLES)
        tests[item.nodeid.partition("[")[0]][others].append(item)
    for name, cases in tests.items():
        first = zlib.crc32(name.encode())
        fast = _chosen(next(iter(cases.values()))[0], FAST_CASES, len(cases), first)
        repetitions = []
        for number, variants in enumerate(cases.values()):
            chosen = variants[(first + number) % len(variants)] if number in fast else None
            repetitions += [item for item in variants if item is not chosen]
        sample = _chosen(repetitions[0], SAMPLE, len(repetitions), first) if repetitions else ()
        for number, item in enumerate(repetitions):
            item.add_marker(pytest.mark.slow)
            if number not in sample:
                item.add_marker(pytest.mark.exhaustive)


def _chosen(item: pytest.Item, limits: Mapping[str, int], count: int, first: int) -> Container[int]:
    """Return which of `count` cases or runs of a test are chosen: as many as the limit of its directory, or all."""
    wanted = limits.get(item.path.relative_to(HERE).parts[0], count)
    if count <= wanted or item.get_closest_marker("all_cases") is not None:
        return range(count)
    return {(first + number * count // wanted) % count for number in range(wanted)}


def pytest_collection() -> None:
    """Collect without garbage collection: the tests are tens of thousands of objects that are never freed."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection."""
    gc.freeze()
    gc.enable()
