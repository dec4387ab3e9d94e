"""Both sides of a conversation, as a test reads best: what we do, what the agent says, and what comes of it."""

import json
from collections.abc import Iterable
from typing import Any

from agent_mux.actions import AnyAction
from agent_mux.adapter import Adapter, Codec, CodecContext, Source, Step
from agent_mux.effects import CloseStdin, Effect, WriteStdin
from agent_mux.facts import Fact, Ignored

PLACE = "/home/dev/project"


def codec_of(adapter: Adapter, protocol: str, **context: Any) -> Codec:
    """A codec with this context; without a prompt it only looks on."""
    settings = {"agent": adapter.agent, "protocol": protocol, "cwd": PLACE, **context}
    return adapter.protocols[protocol].codec(CodecContext(**settings))


def as_line(native: Any) -> bytes:
    """Bytes as they are, anything else as JSON without blanks, which is what most agents print."""
    return native if isinstance(native, bytes) else json.dumps(native, separators=(",", ":")).encode()


def receive(codec: Codec, *lines: Any, source: Source = Source.STDOUT) -> list[Step]:
    """What the codec says to these lines: of each something, if only that it says nothing."""
    told = []
    for line in lines:
        new = list(codec.receive(as_line(line), source))
        assert new, f"nothing is said about {line!r}"
        told += new
    return told


def facts_of(steps: Iterable[Step], *kinds: type) -> list[Any]:
    """The facts of these kinds; without kinds all but the silent ones."""
    facts = [step for step in steps if isinstance(step, Fact)]
    if kinds:
        return [fact for fact in facts if isinstance(fact, kinds)]
    return [fact for fact in facts if not isinstance(fact, Ignored)]


def speaking(steps: Iterable[Step]) -> list[Step]:
    """Facts and effects, but for the silent facts."""
    return [step for step in steps if not isinstance(step, Ignored)]


def effects(steps: Iterable[Step]) -> list[Effect]:
    return [step for step in steps if isinstance(step, Effect)]


def sent(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """What the codec wants to be written, parsed."""
    return [json.loads(step.data) for step in steps if isinstance(step, WriteStdin)]


class Talk:
    """A live codec, and an agent that says what the test wants. Each agent's tests add how it speaks."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.steps: list[Step] = []
        self._read = 0
        self.do(codec.start())

    def do(self, steps: Iterable[Step]) -> list[Step]:
        self.steps += (new := list(steps))
        return new

    def says(self, *lines: Any) -> list[Step]:
        """The agent prints."""
        return self.do(receive(self.codec, *lines))

    def want(self, action: AnyAction) -> list[Step]:
        """We ask for something."""
        return self.do(self.codec.request(action))

    def sent(self) -> list[Any]:
        """What was sent since the last look; the end of our input is "EOF"."""
        new = effects(self.steps[self._read :])
        self._read = len(self.steps)
        return [self.shown(effect) for effect in new]

    def shown(self, effect: Effect) -> Any:
        """As tests compare it."""
        match effect:
            case WriteStdin(data):
                assert data.endswith(b"\n")
                assert data.count(b"\n") == 1
                return json.loads(data)
            case CloseStdin():
                return "EOF"
        return effect
