"""Our side of the protocol: the start line, one prompt after the other, end of input.

us                          program
start                 ->
prompt                ->
                      <-    turn_start ... turn_end
prompt, or end of input ->
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from agent_mux.sdk import ERROR_CODES, facts
from agent_mux.sdk.codec import CloseStdin, CodecContext, CodecOutput, Refuse, WriteStdin
from agent_mux.sdk.options import ApprovalMode
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.agent_events.wire import control_line, start_line
from agent_mux_adapters._dialects.tolerant import text

Steps = tuple[CodecOutput, ...]
_ACCEPTED = (facts.Ignored("response", "its effect is reported by other lines"),)


class AgentEventsTurns(PromptQueue):
    """The prompts and control lines that we write. Writes nothing when a run is only observed."""

    def __init__(self, context: CodecContext) -> None:
        super().__init__(context.agent, interactive=context.interactive)
        self._context = context
        self._is_observed = context.prompt is None
        self._images = [image for image in map(_image_of, context.images) if image is not None]
        self._waiting: dict[str, tuple[str, str]] = {}
        """Lines without a response, by id: the kind of the line and its text."""
        self._count = 0
        self.turn: Literal["none", "asked", "running"] = "none"

    def start(self) -> Steps:
        """Write the start line and the first prompt."""
        if self._is_observed:
            return ()
        self._queue(self._context.prompt or "")
        return start_line(self._context), *self.next()

    def steer(self, prompt: str) -> Steps:
        """Send a message into the running turn, or the one about to start; between turns, send it as a prompt."""
        if self.turn == "none" or self._closed:
            return self.send(prompt)
        return (self._write("steer", prompt),)

    def set_model(self, model: str) -> Steps:
        """Use another model from the next turn on."""
        return self._set("set_model", model=model)

    def set_approval_mode(self, mode: ApprovalMode) -> Steps:
        """Continue in another approval mode."""
        return self._set("set_approval_mode", mode=mode)

    def _set(self, kind: str, **fields: Any) -> Steps:
        if self._is_observed or self._closed:
            return (Refuse("STDIN_NOT_AVAILABLE", f"{self._agent} takes no more input; start another run"),)
        self._count += 1
        self._waiting[str(self._count)] = kind, ""
        return (control_line(kind, id=str(self._count), **fields),)

    def interrupt(self) -> Steps:
        """Stop the running turn, or the one that is about to start."""
        if self.turn == "none":
            return (facts.Note(f"nothing to interrupt: {self._agent} waits for a prompt"),)
        return (control_line("interrupt"),)

    def cancel(self) -> Steps:
        """Drop the queued prompts and cancel, because the run is being aborted."""
        self._prompts.clear()
        self._closing = True
        return () if self._is_observed or self._closed else (control_line("cancel"),)

    def next(self) -> Steps:
        """Return the next prompt or the end of our input, if one is due."""
        if self._is_observed or self._closed or self.turn != "none":
            return ()
        if self._prompts:
            self.turn = "asked"
            images, self._images = self._images, []
            return (self._write("prompt", self._prompts.popleft(), images=images or None),)
        if not self._closing:
            return ()
        self._closed = True
        return (CloseStdin(),)

    def track(self, facts_read: Iterable[CodecOutput]) -> Steps:
        """Update the turn from these facts and return what is due."""
        steps: Steps = ()
        for fact in facts_read:
            match fact:
                case facts.TurnBegin():
                    self.turn = "running"
                case facts.TurnDone() | facts.TurnFailed() | facts.TurnStopped() | facts.TurnLimitHit():
                    self.turn = "none"
                    steps += self.next()
                case facts.RunClosed():
                    steps += self.finish_run()
        return steps

    def finish_run(self) -> Steps:
        """Drop the queued prompts and end our input, because the program finished."""
        self._prompts.clear()
        self._closing = True
        self.turn = "none"
        return self.next()

    def answered(self, line: Mapping[str, Any]) -> Steps:
        """Read a `response`; return a note or a failure when the line was not accepted."""
        kind, prompt = self._waiting.pop(text(line.get("id")), ("", ""))
        if line.get("accepted") is not False:
            return _ACCEPTED
        reason = text(line.get("message")) or "no reason given"
        if kind == "steer":
            self._prompts.appendleft(prompt)
            return facts.Note(f"the message was not accepted into the turn: {reason}", "warn"), *self.next()
        if kind == "prompt" and self.turn == "asked":
            code = line.get("code")
            failure = facts.Failure(code if code in ERROR_CODES else "INTERNAL", reason)
            self.turn = "none"
            return facts.TurnBegin(), facts.TurnFailed(failure), *self.next()
        return (facts.Note(f"{self._agent} refused {kind or 'a line'}: {reason}", "warn"),)

    def _write(self, kind: str, prompt: str, **fields: Any) -> WriteStdin:
        self._count += 1
        key = str(self._count)
        self._waiting[key] = kind, prompt
        return control_line(kind, id=key, text=prompt, **fields)


def _image_of(place: str) -> dict[str, str] | None:
    head, comma, data = place.partition(";base64,")
    return {"mimeType": head.removeprefix("data:"), "data": data} if comma and place.startswith("data:") else None
