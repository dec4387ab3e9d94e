"""Turns: begun by `system/init`, closed by `result`, and the two do not always alternate.

A result may come late: while background agents run, the CLI holds the result of the first turn back, begins the next
turn for the agent's report, and prints both results at the end. A turn whose model has handed back is over when the
next one begins; its late result only counts.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux import facts
from agent_mux.events.cost import CostRecord
from agent_mux_adapters._dialects.tolerant import kind_of, mapping, text
from agent_mux_adapters.claude.accounting import Accounts
from agent_mux_adapters.claude.conversation import TASK_TURN
from agent_mux_adapters.claude.outcome import ApiError, closing_fact

Facts = tuple[facts.Fact, ...]


class Turns:
    """The turns of the main agent."""

    def __init__(self, accounts: Accounts, *, max_turns: int) -> None:
        self.said_something = False
        """The main agent did, in this turn."""
        self.interrupted = False
        """The CLI said so in this turn."""
        self.api_error: ApiError | None = None
        """Of the last request that failed in this turn."""
        self._accounts = accounts
        self._max_turns = max_turns
        self._late = 0
        """Results still to come of turns that are over."""
        self._held: Mapping[str, Any] | None = None
        """A result that was taken for a late one, while nothing came after it."""

    def said(self) -> None:
        """The main agent said or did something."""
        self.said_something, self._held = True, None

    def begin(self, *, handed_back: bool) -> Facts:
        """`system/init`."""
        if not (self.said_something and handed_back):
            return ()
        self._late += 1
        self._start_over()
        return (facts.TurnDone(),)

    def end(self, line: Mapping[str, Any]) -> Facts:
        """`result`."""
        untold = self._accounts.untold(line)
        cost, run_cost = self._accounts.spent_until(line)
        spent = (*untold, *run_cost)
        if self._late:
            self._late -= 1
            self._held = line
            return (*spent, self._late_news(line))
        closing = self._closing(line, cost)
        said = self._only_in_result(line, closing)
        empty = not self.said_something and not said
        self._start_over()
        if empty and isinstance(closing, facts.TurnDone) and mapping(line.get("origin")).get("kind") == TASK_TURN:
            return (*spent, facts.Ignored(kind_of(line), "a turn in which nothing happened"))
        return (*said, *spent, closing)

    def finish(self) -> Facts:
        """The process is gone. If the last result was no late one after all, it closes the turn."""
        if self._held is None or not self.said_something:
            return ()
        return (self._closing(self._held, None),)

    def _late_news(self, line: Mapping[str, Any]) -> facts.Fact:
        closing = self._closing(line, None)
        if isinstance(closing, facts.TurnFailed):
            return facts.Trouble(closing.failure.code, closing.failure.message)
        return facts.Ignored(kind_of(line), "the result of a turn that was over before")

    def _closing(self, line: Mapping[str, Any], cost: CostRecord | None) -> facts.Fact:
        return closing_fact(line, self.api_error, cost, interrupted=self.interrupted, max_turns=self._max_turns)

    def _only_in_result(self, line: Mapping[str, Any], closing: facts.Fact) -> Facts:
        """The answer, where the result is the only line that has it (`--output-format json`, local commands)."""
        answer = text(line.get("result"))
        good = isinstance(closing, facts.TurnDone) and "structured_output" not in line
        return (facts.Text(answer),) if answer and good and not self.said_something else ()

    def _start_over(self) -> None:
        self._held = None
        self.said_something = self.interrupted = False
        self.api_error = None
