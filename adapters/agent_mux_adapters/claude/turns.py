"""When the CLI's standard input may be closed: when every prompt is answered and nothing can start another turn.

With `--input-format=stream-json` the CLI lives until its input closes; closing it early denies whatever asks for
permission afterwards. A prompt sent in the middle of a turn is merged into it (two prompts, one result) or begins the
next one, and only `--replay-user-messages` tells which: each prompt is printed again when it is taken up. A background
task that ends begins a turn of its own, or is merged like a prompt. `session_state_changed` says when the CLI is idle.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux import facts
from agent_mux.events.cost import CostRecord
from agent_mux_adapters._dialects.stream_json import codec
from agent_mux_adapters._dialects.tolerant import kind_of, mapping, rows, text
from agent_mux_adapters.claude.outcome import ApiError, closing_fact
from agent_mux_adapters.claude.usage import ClaudeUsage

NOTIFICATION = "<task-notification>"
LOCAL_OUTPUT = "<local-command-"
TASK_TURN = "task-notification"
NO_TURN_FOLLOWS = "stopped"
"""A task that was stopped is mentioned in the next turn, but begins none."""


class ClaudeInput(codec.StreamJsonInput):
    """What is still owed. Turns begin by themselves, too: for what ended in the background."""

    def __init__(self, *, keep_open: bool) -> None:
        super().__init__(keep_open=keep_open)
        self._running = False
        self._tells_state = False
        self._taken_up = False
        """This turn took up a prompt that was printed again."""
        self._background: set[str] = set()
        self._notices: dict[str, str] = {}
        """Ended background tasks that no turn has taken up: task id -> run id."""

    @property
    def is_busy(self) -> bool:
        """A turn runs, or will."""
        return bool(super().is_busy or self._running or self._background or self._notices)

    def turn_began(self) -> None:
        """`system/init`."""
        self._running, self._taken_up = True, False

    def printed_again(self, content: Any) -> None:
        """A `user` line with `isReplay`: a turn took this up."""
        said = text(content) if isinstance(content, str) else "".join(text(row.get("text")) for row in rows(content))
        if said.startswith(NOTIFICATION):
            self._notices.pop(said.partition("<task-id>")[2].partition("</task-id>")[0], None)
        elif not said.startswith(LOCAL_OUTPUT):
            self.prompt_answered()
            self._taken_up = True

    def turn_ended(self, result: Mapping[str, Any]) -> None:
        """A `result` line. One without any prompt printed again answered one all the same (a local command)."""
        origin = mapping(result.get("origin"))
        if origin.get("kind") == TASK_TURN:
            over = text(origin.get("runId"))
            self._notices = {task: run for task, run in self._notices.items() if run != over}
        elif not self._taken_up:
            self.prompt_answered()
        self._taken_up = False
        if not self._tells_state:
            self._running = False

    def state_changed(self, state: str) -> None:
        """`system/session_state_changed`. Idle means that no turn is queued either."""
        self._tells_state = True
        self._running = state != "idle"
        if not self._running:
            self._notices.clear()

    def background_changed(self, tasks: Any) -> None:
        """`system/background_tasks_changed`: these run now."""
        self._background = {text(task.get("task_id")) for task in rows(tasks)}

    def background_ended(self, line: Mapping[str, Any]) -> None:
        """`system/task_notification` of a task that ran in the background."""
        task = text(line.get("task_id"))
        if task in self._background and line.get("status") != NO_TURN_FOLLOWS:
            self._notices[task] = text(line.get("run_id"))


# TODO Turns: begun by `system/init`, closed by `result`, and the two do not always alternate.
#
# A result may come late: while background agents run, the CLI holds the result of the first turn back, begins the next
# turn for the agent's report, and prints both results at the end. A turn whose model has handed back is over when the
# next one begins; its late result only counts.

Facts = tuple[facts.Fact, ...]


class ClaudeTurns:
    """The turns of the main agent."""

    def __init__(self, accounts: ClaudeUsage, *, max_turns: int) -> None:
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
