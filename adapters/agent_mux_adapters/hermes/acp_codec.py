"""ACP as Hermes speaks it: as the dialect reads it, without the line breaks that Hermes puts before some words.

What a rule of ours keeps from even being asked for is told as refused, as with the gateway.
"""

from collections.abc import Iterable
from dataclasses import replace as replace_protocol

from msgspec.structs import replace

from agent_mux.adapter import STDOUT, CodecContext, NativeProtocol, Source, Step
from agent_mux.facts import ApprovalAsked, Fact, RequestSettled, TextDelta, ToolDone, ToolReady
from agent_mux_adapters._dialects.acp import AcpCodec, acp_protocol
from agent_mux_adapters.hermes.acp_quirks import QUIRKS
from agent_mux_adapters.hermes.asks import DENIED_BY_RULE, denied_action
from agent_mux_adapters.hermes.turn import BREAK


class HermesAcpCodec(AcpCodec):
    """Speaks with `hermes acp`, or reads what another client spoke with it."""

    def __init__(self, context: CodecContext) -> None:
        super().__init__(context, QUIRKS)
        self._is_speaking = False
        self._commands: dict[str, str] = {}

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        told = super().receive(line, source)
        match told:
            case (TextDelta(),) if self._is_speaking:  # nearly all of them
                return told
        if source is not STDOUT:
            return told
        return [tidied for step in told for tidied in self._tidied(step)]

    def _tidied(self, step: Step) -> tuple[Step, ...]:
        was_speaking = self._is_speaking
        self._is_speaking = isinstance(step, TextDelta) or (was_speaking and not isinstance(step, Fact))
        match step:
            case TextDelta() if not was_speaking:
                return (TextDelta(step.text.removeprefix(BREAK)),)
            case ToolReady(shell=shell) if shell is not None:
                self._commands[step.call_id] = shell.command
            case ToolDone():
                return self._ended(step, self._commands.pop(step.call_id, ""))
        return (step,)

    def _ended(self, done: ToolDone, command: str) -> tuple[Step, ...]:
        action = denied_action(done.error or "")
        if action is None or not command:
            return (done,)
        key = f"rule:{done.call_id}"
        return (
            ApprovalAsked(key, action, command, "medium", done.name, done.call_id, command),
            RequestSettled(key, granted=False, reason=DENIED_BY_RULE),
            replace(done, stdout=None, exit_code=None),  # it never ran
        )


def hermes_over_acp() -> NativeProtocol:
    """The native protocol."""
    usual = acp_protocol(
        QUIRKS,
        chosen_for="every run, where that Python is not found",
        loses=(
            "inputs of its own tools, unless permission is asked for: a title stands for them",
            "the end of calls that read or write files, unless they fail",
            "retries, and the tokens of each model call",
            "questions",
            "what sub-agents do",
            "the output of commands while they run",
            "stderr of commands apart from stdout",
        ),
    )
    return replace_protocol(usual, codec=HermesAcpCodec)
