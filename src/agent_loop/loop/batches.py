"""Execution of all tool calls of one turn: their order and concurrency, and a result for each of them."""

from collections.abc import Iterator, Mapping, Sequence

import anyio

from agent_loop.behavior import ToolExecution
from agent_loop.loop.run import LoopRun
from agent_loop.loop.tool_calls import ToolCallExecution, ToolOutcome, emit_call_result, emit_call_start
from agent_loop.messages import ToolCall, ToolMessage
from agent_loop.tools.results import failure
from agent_loop.tools.tool import DoneSignal, runs_alone

MAX_CONCURRENT_CALLS = 64
"""Maximum of concurrent calls: a model may request thousands, and each may start a process."""
STEERED_TEXT = "Skipped: the user sent a new message; handle it first."
HANDED_OFF_TEXT = "Skipped: the conversation was handed off to another agent before this tool was started."
ENDED_TEXT = "Skipped: the run ended before this tool was started."


class ToolBatch:
    """The tool calls of a turn. `close` adds results for the calls that `execute` did not reach."""

    def __init__(self, run: LoopRun, calls: Sequence[ToolCall], *, cut_call: str | None) -> None:
        """`cut_call` is the id of the call whose arguments are incomplete, because the answer was too long."""
        self._run = run
        self._calls = calls
        self._cut_call = cut_call
        self._announced: set[str] = set()
        self._outcomes: dict[str, ToolOutcome] = {}
        self.done: DoneSignal | None = None
        """Signal of the first tool that ended the run."""

    async def execute(self) -> None:
        """Run the calls by the strategy until all have results, a steering message arrives, or a tool ends the loop."""
        is_sequential_run = self._run.behavior.tool_execution == "sequential"
        for index, group in enumerate(self._groups()):
            if self._run.steering and (index > 0 or is_sequential_run):
                await self.close(STEERED_TEXT)
                return
            await self._run_group(group)
            if await self._hand_off():
                await self.close(HANDED_OFF_TEXT)
                return
            signals = (self._outcomes[call.id].done for call in group)
            self.done = next((signal for signal in signals if signal is not None), None)
            if self.done is not None:
                await self.close(ENDED_TEXT)
                return

    async def _hand_off(self) -> bool:
        """Hand the conversation off if a call of the group did, and return whether one did."""
        run = self._run
        requested, run.requested_handoff = run.requested_handoff, None
        if requested is None or self._outcomes[requested.call_id].message.is_error:
            return False
        run.handed_off_to = requested.target
        with anyio.CancelScope(shield=True):
            await run.emit(requested)
        return True

    async def close(self, text: str) -> None:
        """Add an error result with this text for every call without a result."""
        for call in self._calls:
            if call.id not in self._outcomes:
                if call.id not in self._announced:
                    self._announced.add(call.id)
                    await emit_call_start(self._run, call)
                self._outcomes[call.id] = ToolOutcome(await emit_call_result(self._run, call, failure(text)))

    @property
    def results(self) -> list[ToolMessage]:
        """The results so far, in the order of the calls."""
        return [self._outcomes[call.id].message for call in self._calls if call.id in self._outcomes]

    @property
    def output_bytes(self) -> int:
        """Total size of all results in bytes."""
        return sum(outcome.output_bytes for outcome in self._outcomes.values())

    def _groups(self) -> Iterator[Sequence[ToolCall]]:
        """Yield groups of calls that may run concurrently: readers that follow each other; any other call alone."""
        size = group_size(self._run.behavior.tool_execution, self._run.behavior.batch_size)
        group: list[ToolCall] = []
        for call in self._calls:
            is_alone = runs_alone(self._run.toolset.get(call.name))
            if group and (is_alone or len(group) == size):
                yield group
                group = []
            if is_alone:
                yield [call]
            else:
                group.append(call)
        if group:
            yield group

    async def _run_group(self, group: Sequence[ToolCall]) -> None:
        counts = dict(self._run.tool_counts)  # snapshot before the group: its calls start in any order
        if len(group) == 1:
            await self._execute_call(group[0], counts)
            return
        waiting = iter(group)
        async with anyio.create_task_group() as tasks:
            for _ in group[:MAX_CONCURRENT_CALLS]:
                tasks.start_soon(self._run_calls_in_turn, waiting, counts)

    async def _run_calls_in_turn(self, waiting: Iterator[ToolCall], counts: Mapping[str, int]) -> None:
        for call in waiting:
            await self._execute_call(call, counts)

    async def _execute_call(self, call: ToolCall, counts: Mapping[str, int]) -> None:
        self._announced.add(call.id)
        self._outcomes[call.id] = await ToolCallExecution(
            self._run, call, counts, is_cut=call.id == self._cut_call
        ).execute()


def group_size(strategy: ToolExecution, batch_size: int) -> int:
    """Return the maximum number of concurrent calls of a strategy; writers never run concurrently."""
    if strategy == "sequential":
        return 1
    return batch_size if strategy == "batched" else 1_000_000_000
