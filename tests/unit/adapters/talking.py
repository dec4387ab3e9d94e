"""Both sides of a conversation as a readable test: our actions, the agent's lines, and the resulting steps."""

import json
from collections.abc import Iterable
from typing import Any

from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.codec import AnyAction, CloseStdin, Codec, CodecContext, Effect, Source, Step, WriteStdin
from agent_mux.sdk.facts import Fact, Ignored

PLACE = "/home/dev/project"


def codec_of(adapter: Adapter, protocol: str, **context: Any) -> Codec:
    """Return a codec with this context; without a prompt it only observes."""
    settings = {"agent": adapter.agent, "protocol": protocol, "cwd": PLACE, **context}
    return adapter.protocols[protocol].codec(CodecContext(**settings))


def as_line(native: Any) -> bytes:
    """Return bytes unchanged, and anything else as compact JSON, the form that most agents print."""
    return native if isinstance(native, bytes) else json.dumps(native, separators=(",", ":")).encode()


def receive(codec: Codec, *lines: Any, source: Source = Source.STDOUT) -> list[Step]:
    """Return the steps of the codec for these lines; each line must have at least one."""
    steps = []
    for line in lines:
        new = list(codec.receive(as_line(line), source))
        assert new, f"no step for {line!r}"
        steps += new
    return steps


def facts_of(steps: Iterable[Step], *kinds: type) -> list[Any]:
    """Return the facts of these kinds; without kinds all but `Ignored`."""
    facts = [step for step in steps if isinstance(step, Fact)]
    if kinds:
        return [fact for fact in facts if isinstance(fact, kinds)]
    return [fact for fact in facts if not isinstance(fact, Ignored)]


def speaking(steps: Iterable[Step]) -> list[Step]:
    """Return all steps but `Ignored`."""
    return [step for step in steps if not isinstance(step, Ignored)]


def effects(steps: Iterable[Step]) -> list[Effect]:
    return [step for step in steps if isinstance(step, Effect)]


def sent(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """Return the messages that the codec wants to write, parsed."""
    return [json.loads(step.data) for step in steps if isinstance(step, WriteStdin)]


class Talk:
    """A live codec, and an agent whose messages the test scripts; each agent's tests add its protocol."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.steps: list[Step] = []
        self._read = 0
        self.do(codec.start())

    def do(self, steps: Iterable[Step]) -> list[Step]:
        self.steps += (new := list(steps))
        return new

    def says(self, *lines: Any) -> list[Step]:
        """Let the agent print these lines."""
        return self.do(receive(self.codec, *lines))

    def want(self, action: AnyAction) -> list[Step]:
        """Request an action of the codec."""
        return self.do(self.codec.request(action))

    def sent(self) -> list[Any]:
        """Return what was sent since the last call; the end of our input is "EOF"."""
        new = effects(self.steps[self._read :])
        self._read = len(self.steps)
        return [self.shown(effect) for effect in new]

    def shown(self, effect: Effect) -> Any:
        """Return an effect in the form that tests compare."""
        match effect:
            case WriteStdin(data):
                assert data.endswith(b"\n")
                assert data.count(b"\n") == 1
                return json.loads(data)
            case CloseStdin():
                return "EOF"
        return effect
