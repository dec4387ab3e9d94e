"""How all tests are run."""

import os

from hypothesis import HealthCheck, settings

# A busy machine is no failure: nothing here depends on the clock.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

AT_A_TIME = 2
"""Tests for each processor: those of processes wait more than they work."""


def pytest_xdist_auto_num_workers() -> int:
    """What `--numprocesses=auto` means."""
    return AT_A_TIME * (os.cpu_count() or 1)
