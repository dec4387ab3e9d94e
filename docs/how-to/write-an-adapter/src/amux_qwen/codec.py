"""Qwen Code's stream-json, one-shot and two-way: the dialect's codec with the parts of Qwen Code."""

from agent_mux.sdk import facts
from agent_mux.sdk.codec import CodecContext, CodecOutput, Exit, Source
from agent_mux_adapters._dialects.stream_json.approvals import StreamJsonApprovals
from agent_mux_adapters._dialects.stream_json.codec import StreamJsonCodec, StreamJsonInput, is_live
from amux_qwen.outcome import TURN_LIMIT_EXIT, failure_of
from amux_qwen.reader import Reader
from amux_qwen.tools import TOOLS

APPROVAL_TIMEOUT_MS = 600_000
"""The timeout for approvals; by default Qwen Code denies after a minute."""


class QwenCodec(StreamJsonCodec):
    """One run of Qwen Code. See `agent_mux.sdk.codec.Codec`."""

    def __init__(self, context: CodecContext) -> None:
        conversation = StreamJsonInput(keep_open=context.interactive)
        requests = StreamJsonApprovals(TOOLS, live=is_live(context))
        effort = {"effort": context.thinking_effort} if context.thinking_effort else {}
        hello = {"hooks": None, "timeout": {"canUseTool": APPROVAL_TIMEOUT_MS}, **effort}
        self._lines = Reader(context, conversation)
        self._last_stderr_line = ""
        super().__init__(context, self._lines, requests, conversation, hello)

    def receive(self, line: bytes, source: Source) -> tuple[CodecOutput, ...]:
        """Parse one line; keep the last one of stderr for `finish`."""
        if source is Source.STDERR:
            self._last_stderr_line = line.decode("utf-8", "replace")
        return super().receive(line, source)

    def finish(self, exit: Exit) -> tuple[CodecOutput, ...]:  # noqa: A002  # as in the contract
        """Return the facts of the exit.

        Failures before the first turn are reported only on stderr, the turn limit only by the exit code.
        """
        closing = super().finish(exit)
        if exit.code == TURN_LIMIT_EXIT:
            return (*closing, facts.TurnLimitHit(self._context.max_turns or 0))
        failure = failure_of(self._last_stderr_line)
        if exit.code and failure.code != "AGENT_CRASH" and not self._lines.has_closed:
            return (*closing, facts.TurnFailed(failure))
        return closing
