"""A codec under test with both sides of its run: our actions, the agent's lines, and the resulting steps."""

import json
from collections.abc import Iterable
from typing import Any

from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.codec import AnyAction, CloseStdin, Codec, CodecContext, CodecOutput, Effect, Source, WriteStdin
from agent_mux.sdk.facts import Fact, Ignored

PROJECT = "/home/dev/project"


def codec_of(adapter: Adapter, protocol: str, **context: Any) -> Codec:
    """Return a codec with this context; without a prompt it only observes."""
    settings = {"agent": adapter.agent, "protocol": protocol, "cwd": PROJECT, **context}
    return adapter.protocols[protocol].codec(CodecContext(**settings))


def as_line(native: Any) -> bytes:
    """Return bytes unchanged, and anything else as compact JSON, the form that most agents print."""
    return native if isinstance(native, bytes) else json.dumps(native, separators=(",", ":")).encode()


def receive(codec: Codec, *lines: Any, source: Source = Source.STDOUT) -> list[CodecOutput]:
    """Return the steps of the codec for these lines; each line must have at least one."""
    steps = []
    for line in lines:
        new = list(codec.receive(as_line(line), source))
        assert new, f"no step for {line!r}"
        steps += new
    return steps


def facts_of(steps: Iterable[CodecOutput], *kinds: type) -> list[Any]:
    """Return the facts of these kinds; without kinds all but `Ignored`."""
    facts = [step for step in steps if isinstance(step, Fact)]
    if kinds:
        return [fact for fact in facts if isinstance(fact, kinds)]
    return [fact for fact in facts if not isinstance(fact, Ignored)]


def without_ignored(steps: Iterable[CodecOutput]) -> list[CodecOutput]:
    """Return all steps but `Ignored`."""
    return [step for step in steps if not isinstance(step, Ignored)]


def effects(steps: Iterable[CodecOutput]) -> list[Effect]:
    """Return the effects among the steps."""
    return [step for step in steps if isinstance(step, Effect)]


def sent(steps: Iterable[CodecOutput]) -> list[dict[str, Any]]:
    """Return the messages that the codec wants to write, parsed."""
    return [json.loads(step.data) for step in steps if isinstance(step, WriteStdin)]


class CodecConversation:
    """A codec of a live run, and an agent whose messages the test provides; subclasses add the agent's protocol."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.steps: list[CodecOutput] = []
        self._read = 0
        self.collect(codec.start())

    def collect(self, steps: Iterable[CodecOutput]) -> list[CodecOutput]:
        """Append steps to those of the run, and return them as a list."""
        self.steps += (new := list(steps))
        return new

    def receive(self, *lines: Any) -> list[CodecOutput]:
        """Pass lines of the agent to the codec, and return the resulting steps."""
        return self.collect(receive(self.codec, *lines))

    def request(self, action: AnyAction) -> list[CodecOutput]:
        """Request an action of the codec."""
        return self.collect(self.codec.request(action))

    def sent(self) -> list[Any]:
        """Return the effects since the last call, formatted; closing stdin is "EOF"."""
        new = effects(self.steps[self._read :])
        self._read = len(self.steps)
        return [self.format_effect(effect) for effect in new]

    def format_effect(self, effect: Effect) -> Any:
        """Return an effect in the form that tests compare: the parsed message, "EOF", or the effect itself."""
        match effect:
            case WriteStdin(data):
                assert data.endswith(b"\n")
                assert data.count(b"\n") == 1
                return json.loads(data)
            case CloseStdin():
                return "EOF"
        return effect
