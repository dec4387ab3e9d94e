"""Settings of all tests: signals, hypothesis profiles, garbage collection."""

import gc
import os
import signal

from hypothesis import HealthCheck, settings

# A background job of a shell ignores SIGINT, and so do its children; tests of SIGINT would fail.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadlines: a busy machine must not fail a test.
settings.register_profile("patient", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("patient"), max_examples=1_000)
settings.load_profile(os.environ.get("AMUX_PROPERTIES", "patient"))


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: there are tens of thousands, and they are never freed."""
    gc.freeze()
