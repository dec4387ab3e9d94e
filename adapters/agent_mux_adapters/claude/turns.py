"""Turns of Claude Code, and when its stdin may be closed.

With `--input-format=stream-json` the CLI runs until its stdin is closed; closing it early denies every later permission
request. A prompt that is sent during a turn is merged into it (two prompts, one result) or begins the next one. Only
`--replay-user-messages` shows which: each prompt is printed again when a turn takes it up. A background task that ends
begins a turn by itself, or is merged like a prompt. `session_state_changed` reports when the CLI is idle.

Turns begin with `system/init` and are closed by `result`, but the two do not always alternate. While background agents
run, the CLI holds back the result of the first turn, begins another turn for the agent's report, and prints both
results at the end. A turn whose model has finished is over when the next one begins; its late result is only counted.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.events.base import CostRecord
from agent_mux.sdk import facts
from agent_mux_adapters._dialects.stream_json import codec
from agent_mux_adapters._dialects.tolerant import kind_of, mapping, rows, text
from agent_mux_adapters.claude.outcome import ApiError, closing_fact
from agent_mux_adapters.claude.usage import ClaudeUsage

NOTIFICATION = "<task-notification>"
LOCAL_OUTPUT = "<local-command-"
TASK_TURN = "task-notification"
NO_TURN_FOLLOWS = "stopped"
"""The status of a stopped task, which the next turn mentions but which begins no turn."""


class ClaudeInput(codec.StreamJsonInput):
    """Tracks what the CLI still has to do, including turns that begin by themselves after background tasks."""

    def __init__(self, *, keep_open: bool) -> None:
        super().__init__(keep_open=keep_open)
        self._running = False
        self._reports_state = False
        self._taken_up = False
        """Whether the current turn took up a prompt that was printed again."""
        self._background: set[str] = set()
        self._notices: dict[str, str] = {}
        """Ended background tasks that no turn has taken up: task id to run id."""

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs or will begin."""
        return bool(super().is_busy or self._running or self._background or self._notices)

    def turn_began(self) -> None:
        """Read `system/init`, with which every turn begins."""
        self._running, self._taken_up = True, False

    def printed_again(self, content: Any) -> None:
        """Read a `user` line with `isReplay`: a turn took up this prompt."""
        prompt = text(content) if isinstance(content, str) else "".join(text(row.get("text")) for row in rows(content))
        if prompt.startswith(NOTIFICATION):
            self._notices.pop(prompt.partition("<task-id>")[2].partition("</task-id>")[0], None)
        elif not prompt.startswith(LOCAL_OUTPUT):
            self.prompt_answered()
            self._taken_up = True

    def turn_ended(self, result: Mapping[str, Any]) -> None:
        """Read a `result` line.

        Without a prompt that was printed again, it still answered one (a local command).
        """
        origin = mapping(result.get("origin"))
        if origin.get("kind") == TASK_TURN:
            finished = text(origin.get("runId"))
            self._notices = {task: run for task, run in self._notices.items() if run != finished}
        elif not self._taken_up:
            self.prompt_answered()
        self._taken_up = False
        if not self._reports_state:
            self._running = False

    def state_changed(self, state: str) -> None:
        """Read `system/session_state_changed`. The state `idle` also means that no turn is queued."""
        self._reports_state = True
        self._running = state != "idle"
        if not self._running:
            self._notices.clear()

    def background_changed(self, tasks: Any) -> None:
        """Read `system/background_tasks_changed`, which lists the running tasks."""
        self._background = {text(task.get("task_id")) for task in rows(tasks)}

    def background_ended(self, line: Mapping[str, Any]) -> None:
        """Read `system/task_notification` of a background task."""
        task = text(line.get("task_id"))
        if task in self._background and line.get("status") != NO_TURN_FOLLOWS:
            self._notices[task] = text(line.get("run_id"))


Facts = tuple[facts.Fact, ...]


class ClaudeTurns:
    """The turns of the main agent, and the facts that close them."""

    def __init__(self, usage: ClaudeUsage, *, max_turns: int) -> None:
        self.has_output = False
        """Whether the main agent produced output in this turn."""
        self.interrupted = False
        """Whether the CLI reported an interruption in this turn."""
        self.api_error: ApiError | None = None
        """The error of the last request that failed in this turn."""
        self._usage = usage
        self._max_turns = max_turns
        self._late = 0
        """The number of results that are still due for turns that are over."""
        self._held: Mapping[str, Any] | None = None
        """A result that was counted as a late one, until further output follows."""

    def note_output(self) -> None:
        """Note that the main agent produced output."""
        self.has_output, self._held = True, None

    def begin(self, *, handed_back: bool) -> Facts:
        """Begin a turn at `system/init`; close the previous one if its model has finished."""
        if not (self.has_output and handed_back):
            return ()
        self._late += 1
        self._start_over()
        return (facts.TurnDone(),)

    def end(self, line: Mapping[str, Any]) -> Facts:
        """Return the facts of a `result` line."""
        unreported = self._usage.unreported(line)
        cost, run_cost = self._usage.spend_at_result(line)
        spent = (*unreported, *run_cost)
        if self._late:
            self._late -= 1
            self._held = line
            return (*spent, self._late_news(line))
        closing = self._closing(line, cost)
        answer = self._only_in_result(line, closing)
        empty = not self.has_output and not answer
        self._start_over()
        if empty and isinstance(closing, facts.TurnDone) and mapping(line.get("origin")).get("kind") == TASK_TURN:
            return (*spent, facts.Ignored(kind_of(line), "a turn in which nothing happened"))
        return (*answer, *spent, closing)

    def finish(self) -> Facts:
        """Return the facts that are due when the process has exited.

        If no output followed the last late result, that result closes the turn.
        """
        if self._held is None or not self.has_output:
            return ()
        return (self._closing(self._held, None),)

    def _late_news(self, line: Mapping[str, Any]) -> facts.Fact:
        closing = self._closing(line, None)
        if isinstance(closing, facts.TurnFailed):
            return facts.RecoverableError(closing.failure.code, closing.failure.message)
        return facts.Ignored(kind_of(line), "the result of a turn that had already ended")

    def _closing(self, line: Mapping[str, Any], cost: CostRecord | None) -> facts.Fact:
        return closing_fact(line, self.api_error, cost, interrupted=self.interrupted, max_turns=self._max_turns)

    def _only_in_result(self, line: Mapping[str, Any], closing: facts.Fact) -> Facts:
        """Return the answer when only the result contains it (`--output-format json`, local commands)."""
        answer = text(line.get("result"))
        good = isinstance(closing, facts.TurnDone) and "structured_output" not in line
        return (facts.WholeText(answer),) if answer and good and not self.has_output else ()

    def _start_over(self) -> None:
        self._held = None
        self.has_output = self.interrupted = False
        self.api_error = None
