"""How all tests are run."""

import os

AT_A_TIME = 2
"""Tests for each processor: those of processes wait more than they work."""


def pytest_xdist_auto_num_workers() -> int:
    """What `--numprocesses=auto` means."""
    return AT_A_TIME * (os.cpu_count() or 1)
