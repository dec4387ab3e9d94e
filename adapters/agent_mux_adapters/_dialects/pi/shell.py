"""The output of a command. The agent repeats all of it, or only its end where it is long; we tell what is new."""

from agent_mux import facts
from agent_mux_adapters._dialects.pi.flavor import Flavor, Printed
from agent_mux_adapters._dialects.pi.results import Result

RUNS_ON = -1
"""For a foreground command that the agent moved to the background: it has no exit that is the call's."""
PROBE = 256
"""Characters by which the end of what was told is found again, where the beginning is no longer repeated."""
WINDOW = "the agent does not show all that this command printed"


class ShellOutput:
    """What was told of a command's output."""

    def __init__(self) -> None:
        self._told = 0
        """Bytes, those included that the agent skipped and counted."""
        self._window = ""
        """What the agent showed last."""
        self.has_gaps = False

    def advance(self, printed: Printed) -> str:
        """What is new."""
        if printed.stdout == self._window:
            return ""
        fresh = self._counted(printed) if printed.total_bytes is not None else self._compared(printed.stdout)
        self._window = printed.stdout
        return fresh

    def _counted(self, printed: Printed) -> str:
        data = printed.stdout.encode("utf-8", "replace")
        fresh = (printed.total_bytes or 0) - self._told
        if fresh <= 0:
            return ""
        self._told += fresh
        self.has_gaps = self.has_gaps or fresh > len(data)
        return data[-fresh:].decode("utf-8", "replace")

    def _compared(self, shown: str) -> str:
        if shown.startswith(self._window):
            fresh = shown[len(self._window) :]
        else:
            probe = self._window[-PROBE:]
            at = shown.rfind(probe)
            self.has_gaps = self.has_gaps or at < 0
            fresh = shown[at + len(probe) :] if at >= 0 else shown
        self._told += len(fresh.encode("utf-8", "replace"))
        return fresh


def shell_done(name: str, output: ShellOutput, result: Result, flavor: Flavor) -> tuple[facts.Fact, ...]:
    """The end of a command: the rest of its output, and its exit."""
    printed = flavor.printed(result.shown, result.details, result.failed)
    rest = output.advance(printed)
    before = (facts.ToolOutput(result.call_id, rest),) if rest else ()
    gaps = (facts.Note(WINDOW),) if output.has_gaps or printed.is_cut else ()
    done = facts.ToolDone(
        result.call_id,
        output=None if result.failed else result.output,
        error=result.error if result.failed else None,
        duration_ms=printed.duration_ms,
        exit_code=RUNS_ON if printed.runs_on else printed.exit_code,
        name=name,
    )
    return *gaps, *before, done
