"""Our side of rpc mode: one prompt after the other, messages into the running turn, interrupts, the end of input.

    us                          agent
    get_state             ->
                          <-    its response: the session
    prompt                ->
                          <-    its response, agent_start ... the end of the turn
    prompt, or end of input ->

The process exits as soon as its input ends, even during a turn: stdin is closed between turns only. A message for the
running turn is a `prompt` with `streamingBehavior`; if the turn is over when it arrives, it starts the next one.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from agent_mux.sdk import facts
from agent_mux.sdk.codec import CloseStdin, CodecContext, CodecOutput, Refuse, WriteStdin
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.pi.approvals import PiDialogs
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.reader import PiReader, model_name
from agent_mux_adapters._dialects.tolerant import mapping, text, whole

Steps = tuple[CodecOutput, ...]
_CLOSING = (facts.TurnDone, facts.TurnFailed, facts.TurnStopped)
_NEGOTIATION = "mux-protocol"
"""The id of the command that asks for a version of rpc mode. It is not counted, so that the other ids stay the same."""
_DATA_URL = "data:"
_STATS = "get_session_stats"
_SESSION_COMMANDS = frozenset({"get_state", _STATS})
"""Commands whose responses contain the session's id."""


class _SentCommand(msgspec.Struct, frozen=True):
    """A command without a response yet."""

    kind: str
    """`prompt`, `steer`, `opening` and `probe` (both get_state), or else the name of the command."""
    message: str = ""


class PiRequests(PromptQueue):
    """The commands that were sent, and the state of the turn. Sends nothing when it only observes a recorded run."""

    def __init__(self, context: CodecContext, flavor: Flavor, reader: PiReader, dialogs: PiDialogs) -> None:
        super().__init__(flavor.agent, interactive=context.interactive)
        self._context = context
        self._flavor = flavor
        self._reader = reader
        self._turns = reader.turns
        self._dialogs = dialogs
        self._is_observer = context.prompt is None
        self._continues = context.session_id is not None or context.fork_session_id is not None
        self._images = [image for image in map(_native_image, context.images) if image is not None]
        self._unanswered: dict[str, _SentCommand] = {}
        self._count = 0
        self._turn: Literal["none", "asked", "running"] = "none"
        self._is_opened = False
        self._prior_turns = 0
        self._interrupt_due = False
        self._response_handlers: Mapping[str, Callable[[_SentCommand, Mapping[str, Any]], Steps]] = {
            "abort": lambda *_: self._abort_answered(),
            _STATS: self._turns_counted,
            "opening": self._session_opened,
            "probe": self._probe_answered,
            "prompt": self._prompt_answered,
            "steer": self._steer_answered,
        }

    # -- actions of the consumer

    def start(self) -> Steps:
        """Queue the first prompt, and ask for the session; the prompt is sent after the response."""
        if self._is_observer:
            return ()
        self._queue(self._context.prompt or "")
        session_command = self._flavor.session_command
        first = self._negotiate()
        first += [self._send_command(command, **fields) for command, fields in self._flavor.initial_commands]
        if self._continues and session_command != _STATS:
            first.append(self._send_command(_STATS))
        return *first, self._send_command(session_command, kind="opening")

    def _negotiate(self) -> list[CodecOutput]:
        version = self._flavor.protocol_version
        if version is None:
            return []
        return [self._write(_NEGOTIATION, "negotiate_protocol", None, {"protocolVersion": version})]

    def steer(self, text_sent: str) -> Steps:
        """Send a message into the running turn; without one it becomes a prompt."""
        if self._turn != "running" or self._closed:
            return self.send(text_sent)
        return (self._send_command("prompt", kind="steer", message=text_sent, streamingBehavior="steer"),)

    def set_model(self, model: str) -> Steps:
        """Use another model from the next model call on. Its name begins with the provider."""
        provider, slash, name = model.partition("/")
        if not slash or self._is_observer or self._closed:
            message = f"{self._flavor.agent} names models as provider/model; got {model!r}"
            return (Refuse("VALIDATION_ERROR", message),)
        return (self._send_command("set_model", provider=provider, modelId=name),)

    def interrupt(self) -> Steps:
        """Stop the turn that runs or is about to start."""
        if self._turn == "none" and not self._prompts:
            return (facts.Note(f"nothing to interrupt: {self._flavor.agent} is waiting for a prompt"),)
        self._interrupt_due = True
        return self._send_due_interrupt()

    def cancel(self) -> Steps:
        """Drop the waiting prompts, and abort the turn or close stdin."""
        self._prompts.clear()
        self._closing = True
        if self._turn == "none":
            return self.next()
        return *self._dialogs.cancel_all(), *self._abort()

    # -- what the agent prints

    def react(self, emitted: Iterable[CodecOutput]) -> Steps:
        """Return the steps that the facts of a line call for."""
        steps: list[CodecOutput] = []
        for fact in emitted:
            if isinstance(fact, facts.TurnBegin):
                self._turn = "running"
                steps += self._send_due_interrupt()
            elif isinstance(fact, _CLOSING):
                steps += self._end_turn()
        if self._turns.is_idle_unknown and not self._is_observer and not self._is_probing:
            steps.append(self._send_command("get_state", kind="probe"))
        return tuple(steps)

    def read_response(self, line: Mapping[str, Any]) -> Steps:
        """Read a `response`; an observer reads the session from it."""
        request = self._unanswered.pop(text(line.get("id")), None)
        command = text(line.get("command"))
        if line.get("success") is not True:
            return self._command_refused(request, command, text(line.get("error")))
        if request is not None and request.kind in self._response_handlers:
            return self._response_handlers[request.kind](request, mapping(line.get("data")))
        session_facts = self._name_session(line) if self._is_observer and command in _SESSION_COMMANDS else ()
        return *session_facts, facts.Ignored(f"response/{command}", "its effects are in other lines")

    def read_prompt_result(self, line: Mapping[str, Any]) -> Steps:
        """Read omp's `prompt_result`: a prompt that was a command needs no model, and no turn follows."""
        if line.get("agentInvoked") is False and not self._is_observer:
            return self._complete_without_model()
        return (facts.Ignored("prompt_result", "its effects are in other lines"),)

    def observe(self, line: Mapping[str, Any]) -> None:
        """Note a command that another client sent, so that its response is recognized."""
        if line.get("type") in ("prompt", "abort_and_prompt"):
            self._unanswered[text(line.get("id"))] = _SentCommand("prompt of another")

    # -- responses

    def _session_opened(self, _: _SentCommand, data: Mapping[str, Any]) -> Steps:
        self._is_opened = True
        self._count_turns(data)
        ignored = facts.Ignored(f"response/{self._flavor.session_command}", "the session")
        return *self._name_session({"data": data}), ignored, *self.next()

    def _turns_counted(self, _: _SentCommand, data: Mapping[str, Any]) -> Steps:
        self._count_turns(data)
        return (facts.Ignored(f"response/{_STATS}", "the number of turns"),)

    def _count_turns(self, data: Mapping[str, Any]) -> None:
        if self._continues and "userMessages" in data:
            self._prior_turns = whole(data["userMessages"])

    def _name_session(self, line: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        data = mapping(line.get("data"))
        model = mapping(data.get("model"))
        name = model_name(model.get("provider"), model.get("id")) or None
        return self._reader.name_session(text(data.get("sessionId")), model=name, prior_turns=self._prior_turns)

    def _prompt_answered(self, request: _SentCommand, data: Mapping[str, Any]) -> Steps:
        if data.get("agentInvoked") is False:
            return self._complete_without_model()
        probe: Steps = ()
        if request.message.startswith("/") and self._turn == "asked" and not self._is_probing:
            # The prompt may have been a command, after which the agent prints nothing more: ask for its state.
            probe = (self._send_command("get_state", kind="probe"),)
        return facts.Ignored("response/prompt", "its effects are in other lines"), *probe

    def _complete_without_model(self) -> Steps:
        return facts.TurnBegin(), facts.TurnDone(), *self._end_turn()

    def _steer_answered(self, *_: Any) -> Steps:
        if self._turn == "none":
            self._turn = "asked"
        return (facts.Ignored("response/prompt", "the message is in the turn, or starts the next one"),)

    def _probe_answered(self, _: _SentCommand, data: Mapping[str, Any]) -> Steps:
        ignored = facts.Ignored("response/get_state", "whether the agent is idle")
        if data.get("isStreaming") is True or data.get("isCompacting") is True or whole(data.get("queuedMessageCount")):
            return (ignored,)
        if self._turn == "asked":
            return self._complete_without_model()
        emitted = self._turns.settle() if self._turns.is_idle_unknown else ()
        return ignored, *emitted, *self.react(emitted)

    def _abort_answered(self) -> Steps:
        emitted = self._turns.stop() if self._turn == "running" and not self._turns.is_idle_unknown else ()
        return facts.Ignored("response/abort", "the end of the turn follows"), *emitted, *self.react(emitted)

    def _command_refused(self, request: _SentCommand | None, command: str, error: str) -> Steps:
        kind = request.kind if request is not None else ""
        if kind == "negotiate_protocol":
            return (facts.Ignored(f"response/{kind}", "an older version, whose shortened texts are reported"),)
        if kind == "opening":
            self._is_opened = True
            return facts.Note(f"{self._flavor.agent} does not report its session: {error}", "warn"), *self.next()
        if kind.startswith("prompt") and not self._turns.is_running:
            return *self._turns.refuse(error), *self._end_turn()
        if kind == "steer" and request is not None:
            self._prompts.appendleft(request.message)
            return facts.Note(f"the message was not added to the turn: {error}", "warn"), *self.next()
        return (facts.Note(f"{self._flavor.agent} refused {command or 'a line'}: {error}", "warn"),)

    # -- prompts, interrupts, the end of input

    @property
    def _is_probing(self) -> bool:
        return any(request.kind == "probe" for request in self._unanswered.values())

    def next(self) -> Steps:
        """Send the next prompt, or close stdin after the last one; return nothing while a turn runs."""
        if self._is_observer or self._closed or not self._is_opened or self._turn != "none":
            return ()
        if self._prompts:
            self._turn = "asked"
            images, self._images = self._images, []
            extra: dict[str, Any] = {"images": images} if images else {}
            return (self._send_command("prompt", message=self._prompts.popleft(), **extra),)
        if not self._closing or any(request.kind == "steer" for request in self._unanswered.values()):
            return ()
        self._closed = True
        return (CloseStdin(),)

    def _send_due_interrupt(self) -> Steps:
        """Send an interrupt that had to wait until the turn runs."""
        if self._is_observer or not self._interrupt_due or self._turn != "running":
            return ()
        self._interrupt_due = False
        return *self._dialogs.cancel_all(), *self._abort()

    def _abort(self) -> Steps:
        self._turns.is_interrupting = True
        return (self._send_command("abort"),)

    def _end_turn(self) -> Steps:
        self._turn, self._interrupt_due = "none", False
        self._dialogs.end_turn()
        return self.next()

    def _send_command(self, command: str, *, kind: str | None = None, **fields: Any) -> WriteStdin:
        self._count += 1
        return self._write(f"mux-{self._count}", command, kind, fields)

    def _write(self, key: str, command: str, kind: str | None, fields: Mapping[str, Any]) -> WriteStdin:
        self._unanswered[key] = _SentCommand(kind or command, text(fields.get("message")))
        line = json.dumps({"id": key, "type": command, **fields}, ensure_ascii=False)
        return WriteStdin(line.encode("utf-8", "replace") + b"\n")


def _native_image(url: str) -> dict[str, str] | None:
    """Convert a `data:` URL to a native image; None for other URLs."""
    head, comma, data = url.removeprefix(_DATA_URL).partition(",")
    if not url.startswith(_DATA_URL) or not comma:
        return None
    return {"type": "image", "data": data, "mimeType": head.partition(";")[0]}
