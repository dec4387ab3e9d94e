"""The time limits of a run, and the timers of a protocol without lines. Each works for one attempt."""

import anyio
import anyio.abc

from agent_mux.journal.records import Control
from agent_mux.run.agent_process import OutputReader
from agent_mux.run.core import RunCore


class RunTimers:
    """Starts the timers of an attempt. They end when its task group is cancelled."""

    def __init__(self, core: RunCore) -> None:
        self._core = core

    def begin_attempt(self, tasks: anyio.abc.TaskGroup, output: OutputReader) -> None:
        """Start the timers that the options and the protocol require."""
        options, protocol = self._core.plan.options, self._core.plan.protocol
        if protocol.framing != "lines":
            tasks.start_soon(output.flush_held_soon)
        if protocol.quiet_after is not None:
            tasks.start_soon(output.watch_for_quiet, protocol.quiet_after, self._record_quiet)
        if options.timeout:
            tasks.start_soon(self._stop_after, options.timeout)
        if options.inactivity_timeout:
            tasks.start_soon(self._stop_when_silent, output, options.inactivity_timeout)

    async def _stop_after(self, seconds: float) -> None:
        await anyio.sleep(max(seconds - self._core.recorder.now() / 1_000_000, 0))  # all attempts together
        self._core.stop("timeout")

    async def _stop_when_silent(self, output: OutputReader, seconds: float) -> None:
        await output.wait_for_silence(seconds, self._is_waiting_for_consumer)
        self._core.stop("inactivity")

    def _is_waiting_for_consumer(self) -> bool:
        return self._core.state.state == "paused" or bool(self._core.normalizer.pending)

    def _record_quiet(self) -> None:
        self._core.control(Control("quiet"))
