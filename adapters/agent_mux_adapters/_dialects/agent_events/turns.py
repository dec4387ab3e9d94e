"""Our side: the first line, prompts one after the other, and when to hang up.

us                          program
start                 ->
prompt                ->
                      <-    turn_start ... turn_end
prompt, or end of input ->
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from agent_mux import facts
from agent_mux.adapter import CodecContext, Step
from agent_mux.effects import CloseStdin, WriteStdin
from agent_mux.errors import ERROR_CODES
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.agent_events.wire import control_line, start_line
from agent_mux_adapters._dialects.tolerant import text

Steps = tuple[Step, ...]
_SILENT = (facts.Ignored("response", "what comes of it is told elsewhere"),)


class AgentEventsTurns(PromptQueue):
    """What we have asked. Silent when a run of somebody else is only observed."""

    def __init__(self, context: CodecContext) -> None:
        super().__init__(context.agent, interactive=context.interactive)
        self._context = context
        self._silent = context.prompt is None
        self._images = [image for image in map(_image_of, context.images) if image is not None]
        self._waiting: dict[str, tuple[str, str]] = {}
        """Id -> what was asked, and its text."""
        self._count = 0
        self.turn: Literal["none", "asked", "running"] = "none"

    def start(self) -> Steps:
        """The process runs."""
        if self._silent:
            return ()
        self._queue(self._context.prompt or "")
        return start_line(self._context), *self.next()

    def steer(self, said: str) -> Steps:
        """A message for the turn that runs, or is about to; without one it is a prompt."""
        if self.turn == "none" or self._closed:
            return self.send(said)
        return (self._ask("steer", said),)

    def interrupt(self) -> Steps:
        """Stop the turn that runs, or is about to."""
        if self.turn == "none":
            return (facts.Note(f"nothing to interrupt: {self._agent} waits for a prompt"),)
        return (control_line("interrupt"),)

    def cancel(self) -> Steps:
        """The run is being aborted."""
        self._prompts.clear()
        self._closing = True
        return () if self._silent or self._closed else (control_line("cancel"),)

    def next(self) -> Steps:
        """The next prompt, or the end of our input, if it is time for one of them."""
        if self._silent or self._closed or self.turn != "none":
            return ()
        if self._prompts:
            self.turn = "asked"
            images, self._images = self._images, []
            return (self._ask("prompt", self._prompts.popleft(), images=images or None),)
        if not self._closing:
            return ()
        self._closed = True
        return (CloseStdin(),)

    def after(self, told: Iterable[Step]) -> Steps:
        """What is to be done about what the program told."""
        steps: Steps = ()
        for fact in told:
            match fact:
                case facts.TurnBegin():
                    self.turn = "running"
                case facts.TurnDone() | facts.TurnFailed() | facts.TurnStopped() | facts.TurnLimitHit():
                    self.turn = "none"
                    steps += self.next()
                case facts.RunClosed():
                    steps += self.leave()
        return steps

    def leave(self) -> Steps:
        """The program said that it is done: nothing that we could say would be heard."""
        self._prompts.clear()
        self._closing = True
        self.turn = "none"
        return self.next()

    def answered(self, line: Mapping[str, Any]) -> Steps:
        """`response`."""
        kind, said = self._waiting.pop(text(line.get("id")), ("", ""))
        if line.get("accepted") is not False:
            return _SILENT
        why = text(line.get("message")) or "it does not say why"
        if kind == "steer":
            self._prompts.appendleft(said)
            return facts.Note(f"the message was not taken into the turn: {why}", "warn"), *self.next()
        if kind == "prompt" and self.turn == "asked":
            code = line.get("code")
            failure = facts.Failure(code if code in ERROR_CODES else "INTERNAL", why)
            self.turn = "none"
            return facts.TurnBegin(), facts.TurnFailed(failure), *self.next()
        return (facts.Note(f"{self._agent} refused {kind or 'a line'}: {why}", "warn"),)

    def _ask(self, kind: str, said: str, **fields: Any) -> WriteStdin:
        self._count += 1
        key = str(self._count)
        self._waiting[key] = kind, said
        return control_line(kind, id=key, text=said, **fields)


def _image_of(place: str) -> dict[str, str] | None:
    head, comma, data = place.partition(";base64,")
    return {"mimeType": head.removeprefix("data:"), "data": data} if comma and place.startswith("data:") else None
