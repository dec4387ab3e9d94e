"""How all tests are run."""

import os
import signal

from hypothesis import HealthCheck, settings

# What a shell starts in the background has SIGINT ignored, and so has all that it starts: no test of it could pass.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure: nothing here depends on the clock.
settings.register_profile("patient", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("patient"), max_examples=1_000)
settings.load_profile(os.environ.get("AMUX_PROPERTIES", "patient"))

AT_A_TIME = 2
"""Tests for each processor: those of processes wait more than they work."""


def pytest_xdist_auto_num_workers() -> int:
    """What `--numprocesses=auto` means."""
    return AT_A_TIME * (os.cpu_count() or 1)
