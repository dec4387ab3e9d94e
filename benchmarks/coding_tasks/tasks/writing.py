"""Helpers to write tasks compactly."""

import textwrap

from benchmarks.coding_tasks.steps import Run, Step

__all__ = ["failing", "hidden", "passing", "text"]


def text(block: str) -> str:
    """Return an indented block as the content of a file."""
    return textwrap.dedent(block).removeprefix("\n")


def hidden(*lines: str) -> str:
    """Return a module with one hidden test that has these lines."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return f"import unittest\n\n\nclass Hidden(unittest.TestCase):\n    def test_behaviour(self):\n{body}\n"


def passing(*otherwise: Step) -> Run:
    """Return the step that runs the tests of the repository, which should pass now."""
    return Run("python3 -m unittest -q", shows="OK", otherwise=otherwise)


def failing(shows: str = "FAILED", *otherwise: Step) -> Run:
    """Return the step that runs the tests of the repository, which should fail with this text."""
    return Run("python3 -m unittest -q", shows=shows, otherwise=otherwise)
