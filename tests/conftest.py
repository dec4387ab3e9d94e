"""Settings of all tests: signals, standard streams, slow doubles, hypothesis profiles, garbage collection."""

import gc
import os
import signal
import zlib
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

INTERPRETERS_OWN = {signal.SIGINT: signal.default_int_handler}
"""Signals whose default in Python is not the system's."""
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    # `nohup` ignores SIGHUP, a background job of a shell SIGINT and SIGQUIT, and child processes inherit that.
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, INTERPRETERS_OWN.get(ignored, signal.SIG_DFL))

# Without the three standard descriptors, the next file or pipe that is opened would become one of them.
while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
    os.set_inheritable(descriptor, True)
os.close(descriptor)

# No deadlines: a busy machine must not fail a test.
settings.register_profile("patient", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("patient"), max_examples=1_000)
settings.load_profile(os.environ.get("AMUX_PROPERTIES", "patient"))

DOUBLES = ("anyio_backend", "make_client", "database_url")
"""Parameters that run the same test again: on another event loop, with another client, with another database."""
NO_PARAMETERS = SimpleNamespace(params={})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all but one variant of each test as `slow`: in turn another one, so that the fast tests use all of them."""
    tests: dict[str, dict[Any, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        parameters = getattr(item, "callspec", NO_PARAMETERS).params
        if not parameters.keys().isdisjoint(DOUBLES):
            # Variants of a test share the other parameters: the same objects.
            others = frozenset((name, id(value)) for name, value in parameters.items() if name not in DOUBLES)
            tests[item.nodeid.partition("[")[0]][others].append(item)
    for name, cases in tests.items():
        for number, variants in enumerate(cases.values(), zlib.crc32(name.encode())):
            del variants[number % len(variants)]
            for item in variants:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: there are tens of thousands, and they are never freed."""
    gc.freeze()
