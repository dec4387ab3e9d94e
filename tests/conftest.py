"""How all tests are run."""

import gc
import os
import signal

from hypothesis import HealthCheck, settings

# What a shell starts in the background has SIGINT ignored, and so has all that it starts: no test of it could pass.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure: nothing here depends on the clock.
settings.register_profile("patient", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("patient"), max_examples=1_000)
settings.load_profile(os.environ.get("AMUX_PROPERTIES", "patient"))


def pytest_collection_finish() -> None:
    """Tens of thousands of tests are collected, and never become garbage: nobody need look at them again."""
    gc.freeze()
