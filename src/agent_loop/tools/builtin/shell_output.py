"""What the model is shown of a command that ended. Source: zidane, `shell`."""

from agent_loop.tools.builtin.captured import Captured
from agent_loop.tools.builtin.running import Ended
from agent_loop.tools.builtin.tail import last_bytes, marked


def shown(captured: Captured, ended: Ended, milliseconds: int, *, timed_out: float | None, metadata: bool) -> str:
    """The result for the model: stdout, stderr under a heading, how it ended. Without metadata: stdout alone.

    `timed_out`: the seconds after which it was ended; None: it ended by itself.
    """
    output = captured.stdout.text
    dropped = captured.stdout.dropped
    if metadata and captured.stderr:
        output = f"{_with_newline(output)}[stderr]\n{captured.stderr.text}"
        dropped += captured.stderr.dropped
    end, cut = last_bytes(output, captured.limit)
    body = marked(end, dropped + cut)
    if not metadata and timed_out is None:
        return body or "(no output)"
    return _with_newline(body) + "\n".join(_footer(ended, milliseconds, timed_out))


def _footer(ended: Ended, milliseconds: int, timed_out: float | None) -> list[str]:
    lines = [f"(exit {ended.exit_code}, {milliseconds}ms)"]
    if timed_out is not None:
        lines.insert(0, f"(timed out after {timed_out:g} seconds: it was ended, with all that it had started)")
    elif ended.left:
        lines.insert(0, f"(processes it left in the background were ended: {ended.left})")
    return lines


def _with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
