"""When the CLI's standard input may be closed: when every prompt is answered and nothing can start another turn.

With `--input-format=stream-json` the CLI lives until its input closes; closing it early denies whatever asks for
permission afterwards. A prompt sent in the middle of a turn is merged into it (two prompts, one result) or begins the
next one, and only `--replay-user-messages` tells which: each prompt is printed again when it is taken up. A background
task that ends begins a turn of its own, or is merged like a prompt. `session_state_changed` says when the CLI is idle.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux_adapters._dialects.stream_json import codec
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

NOTIFICATION = "<task-notification>"
LOCAL_OUTPUT = "<local-command-"
TASK_TURN = "task-notification"
NO_TURN_FOLLOWS = "stopped"
"""A task that was stopped is mentioned in the next turn, but begins none."""


class Conversation(codec.StreamJsonTurns):
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
    def is_owed(self) -> bool:
        """A turn runs, or will."""
        return bool(super().is_owed or self._running or self._background or self._notices)

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
