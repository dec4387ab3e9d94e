"""What is open and has to end before something else does."""

from collections.abc import Iterator

from agent_mux.contract.breach import Report

Opened = Iterator[tuple[str, str]]
"""For each open thing: the rule that says it must end, and what it is."""


def report_opened(opened: Opened, when: str, report: Report) -> None:
    """Each open thing is a breach."""
    for rule, what in opened:
        report(rule, f"{what} is still open {when}")
