"""Our side of rpc mode: prompts one after the other, and when to hang up.

    us                          agent
    get_state             ->
                          <-    its response: the session
    prompt                ->
                          <-    its response, agent_start ... the end of the turn
    prompt, or end of input ->

The end of our input ends the process at once, whatever it does: it must not come in mid turn. A message for the turn
that runs is a `prompt` with `streamingBehavior`: if the turn is over when it arrives, it begins the next one.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from agent_mux import facts
from agent_mux.adapter import CodecContext, Step
from agent_mux.effects import CloseStdin, WriteStdin
from agent_mux_adapters._dialects.actions import PromptQueue
from agent_mux_adapters._dialects.pi.dialogs import Dialogs
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.reader import Reader, model_name
from agent_mux_adapters._dialects.tolerant import mapping, text, whole

Steps = tuple[Step, ...]
_CLOSING = (facts.TurnDone, facts.TurnFailed, facts.TurnStopped)
_DATA_URL = "data:"
_STATS = "get_session_stats"
_NAMING = frozenset({"get_state", _STATS})
"""Commands whose responses name the session."""


class _Asked(msgspec.Struct, frozen=True):
    """A command of ours that has no response yet."""

    kind: str
    """`prompt`, `steer`, `opening` and `probe` (both get_state), or the command's own name."""
    message: str = ""


class Conversation(PromptQueue):
    """What we have asked and still have to ask. Silent when a run of somebody else is only observed."""

    def __init__(self, context: CodecContext, flavor: Flavor, reader: Reader, dialogs: Dialogs) -> None:
        super().__init__(flavor.agent, interactive=context.interactive)
        self._context = context
        self._flavor = flavor
        self._reader = reader
        self._turns = reader.turns
        self._dialogs = dialogs
        self._silent = context.prompt is None
        self._continues = context.session_id is not None or context.fork_session_id is not None
        self._images = [image for image in map(_image_of, context.images) if image is not None]
        self._waiting: dict[str, _Asked] = {}
        self._count = 0
        self._turn: Literal["none", "asked", "running"] = "none"
        self._ready = False
        self._prior_turns = 0
        self._interrupt_due = False
        self._answers: Mapping[str, Callable[[_Asked, Mapping[str, Any]], Steps]] = {
            "abort": lambda *_: self._aborted(),
            _STATS: self._counted,
            "opening": self._opened,
            "probe": self._probed,
            "prompt": self._prompted,
            "steer": self._steered,
        }

    # -- what a consumer wants

    def start(self) -> Steps:
        """The process runs."""
        if self._silent:
            return ()
        self._queue(self._context.prompt or "")
        opening = self._flavor.opening
        first = [self._ask(command, **fields) for command, fields in self._flavor.greeting]
        if self._continues and opening != _STATS:
            first.append(self._ask(_STATS))
        return *first, self._ask(opening, kind="opening")

    def steer(self, said: str) -> Steps:
        """A message for the turn that runs; without one it is a prompt."""
        if self._turn != "running" or self._closed:
            return self.send(said)
        return (self._ask("prompt", kind="steer", message=said, streamingBehavior="steer"),)

    def interrupt(self) -> Steps:
        """Stop the turn that runs, or is about to."""
        if self._turn == "none" and not self._prompts:
            return (facts.Note(f"nothing to interrupt: {self._flavor.agent} waits for a prompt"),)
        self._interrupt_due = True
        return self._catch_up()

    def cancel(self) -> Steps:
        """The run is being aborted."""
        self._prompts.clear()
        self._closing = True
        if self._turn == "none":
            return self.next()
        return *self._dialogs.cancel_all(), *self._abort()

    # -- what the agent says

    def after(self, told: Iterable[Step]) -> Steps:
        """What is to be done about what the agent told."""
        steps: list[Step] = []
        for fact in told:
            if isinstance(fact, facts.TurnBegin):
                self._turn = "running"
                steps += self._catch_up()
            elif isinstance(fact, _CLOSING):
                steps += self._turn_over()
        if self._turns.idle_unknown and not self._silent and not self._is_probing:
            steps.append(self._ask("get_state", kind="probe"))
        return tuple(steps)

    def answered(self, line: Mapping[str, Any]) -> Steps:
        """`response`."""
        asked = self._waiting.pop(text(line.get("id")), None)
        command = text(line.get("command"))
        if line.get("success") is not True:
            return self._refused(asked, command, text(line.get("error")))
        if asked is not None and asked.kind in self._answers:
            return self._answers[asked.kind](asked, mapping(line.get("data")))
        known = self._state(line) if self._silent and command in _NAMING else ()
        return *known, facts.Ignored(f"response/{command}", "what comes of it is told elsewhere")

    def prompt_result(self, line: Mapping[str, Any]) -> Steps:
        """omp: the prompt was a command that needed no model."""
        if line.get("agentInvoked") is False and not self._silent:
            return self._handled()
        return (facts.Ignored("prompt_result", "what comes of it is told elsewhere"),)

    def overhear(self, line: Mapping[str, Any]) -> None:
        """A command of another client."""
        if line.get("type") in ("prompt", "abort_and_prompt"):
            self._waiting[text(line.get("id"))] = _Asked("prompt of another")

    # -- responses

    def _opened(self, _: _Asked, data: Mapping[str, Any]) -> Steps:
        self._ready = True
        self._count_turns(data)
        silent = facts.Ignored(f"response/{self._flavor.opening}", "the session")
        return *self._state({"data": data}), silent, *self.next()

    def _counted(self, _: _Asked, data: Mapping[str, Any]) -> Steps:
        self._count_turns(data)
        return (facts.Ignored(f"response/{_STATS}", "the turns so far"),)

    def _count_turns(self, data: Mapping[str, Any]) -> None:
        if self._continues and "userMessages" in data:
            self._prior_turns = whole(data["userMessages"])

    def _state(self, line: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        data = mapping(line.get("data"))
        model = mapping(data.get("model"))
        name = model_name(model.get("provider"), model.get("id")) or None
        return self._reader.session_known(text(data.get("sessionId")), model=name, prior_turns=self._prior_turns)

    def _prompted(self, asked: _Asked, data: Mapping[str, Any]) -> Steps:
        if data.get("agentInvoked") is False:
            return self._handled()
        probe: Steps = ()
        if asked.message.startswith("/") and self._turn == "asked" and not self._is_probing:
            probe = (self._ask("get_state", kind="probe"),)  # it may have been a command, of which nothing comes
        return facts.Ignored("response/prompt", "what comes of it is told elsewhere"), *probe

    def _handled(self) -> Steps:
        return facts.TurnBegin(), facts.TurnDone(), *self._turn_over()

    def _steered(self, *_: Any) -> Steps:
        if self._turn == "none":
            self._turn = "asked"
        return (facts.Ignored("response/prompt", "the message is in the turn, or begins the next"),)

    def _probed(self, _: _Asked, data: Mapping[str, Any]) -> Steps:
        silent = facts.Ignored("response/get_state", "whether the agent is idle")
        if data.get("isStreaming") is True or data.get("isCompacting") is True:
            return (silent,)
        if self._turn == "asked":
            return self._handled()
        told = self._turns.settled() if self._turns.idle_unknown else ()
        return silent, *told, *self.after(told)

    def _aborted(self) -> Steps:
        told = self._turns.stopped() if self._turn == "running" and not self._turns.idle_unknown else ()
        return facts.Ignored("response/abort", "how the turn ended tells it"), *told, *self.after(told)

    def _refused(self, asked: _Asked | None, command: str, error: str) -> Steps:
        kind = asked.kind if asked is not None else ""
        if kind == "opening":
            self._ready = True
            return facts.Note(f"{self._flavor.agent} does not tell its session: {error}", "warn"), *self.next()
        if kind.startswith("prompt") and not self._turns.is_running:
            return *self._turns.refused(error), *self._turn_over()
        if kind == "steer" and asked is not None:
            self._prompts.appendleft(asked.message)
            return facts.Note(f"the message was not taken into the turn: {error}", "warn"), *self.next()
        return (facts.Note(f"{self._flavor.agent} refused {command or 'a line'}: {error}", "warn"),)

    # -- inside

    @property
    def _is_probing(self) -> bool:
        return any(asked.kind == "probe" for asked in self._waiting.values())

    def next(self) -> Steps:
        """The next prompt, or the end of our input, if it is time for one of them."""
        if self._silent or self._closed or not self._ready or self._turn != "none":
            return ()
        if self._prompts:
            self._turn = "asked"
            images, self._images = self._images, []
            extra: dict[str, Any] = {"images": images} if images else {}
            return (self._ask("prompt", message=self._prompts.popleft(), **extra),)
        if not self._closing or any(asked.kind == "steer" for asked in self._waiting.values()):
            return ()
        self._closed = True
        return (CloseStdin(),)

    def _catch_up(self) -> Steps:
        """Say what had to wait for the turn to run."""
        if self._silent or not self._interrupt_due or self._turn != "running":
            return ()
        self._interrupt_due = False
        return *self._dialogs.cancel_all(), *self._abort()

    def _abort(self) -> Steps:
        self._turns.interrupting = True
        return (self._ask("abort"),)

    def _turn_over(self) -> Steps:
        self._turn, self._interrupt_due = "none", False
        self._dialogs.turn_over()
        return self.next()

    def _ask(self, command: str, *, kind: str | None = None, **fields: Any) -> WriteStdin:
        self._count += 1
        key = f"mux-{self._count}"
        self._waiting[key] = _Asked(kind or command, text(fields.get("message")))
        line = json.dumps({"id": key, "type": command, **fields}, ensure_ascii=False)
        return WriteStdin(line.encode("utf-8", "replace") + b"\n")


def _image_of(place: str) -> dict[str, str] | None:
    """A `data:` URL as the agent takes images."""
    head, comma, data = place.removeprefix(_DATA_URL).partition(",")
    if not place.startswith(_DATA_URL) or not comma:
        return None
    return {"type": "image", "data": data, "mimeType": head.partition(";")[0]}
