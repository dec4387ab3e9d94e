"""Both sides of a run of pi or omp, as a test reads best: what we do, what the agent says, and what comes of it."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.unit.adapters.parsed_recordings import parsed

from agent_mux.actions import AnyAction
from agent_mux.adapter import Adapter, Codec, CodecContext, Source, Step
from agent_mux.effects import CloseStdin, Effect, WriteStdin
from agent_mux.events import AgentEvent
from agent_mux.facts import Fact, Ignored, LogLine
from agent_mux.native_json import load_object
from agent_mux.testing.fixtures import Fixture, find_fixtures, load_fixture
from agent_mux_adapters._dialects.tolerant import mapping

FIXTURES = Path(__file__).parents[3] / "fixtures"
PLACE = "/home/dev/project"
RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


class Recordings:
    """The recordings of one agent, by `version/name`."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self._folders = {"/".join(f.parts[-2:]): f for f in find_fixtures(FIXTURES, adapter.agent)}
        self.names = tuple(sorted(self._folders))

    @cache  # noqa: B019  # one per agent, for as long as the tests run
    def get(self, name: str) -> Fixture:
        return load_fixture(self._folders[name])

    def protocol(self, name: str) -> str:
        told = self.get(name).protocol
        return told if told in self.adapter.protocols else "json"

    def codec(self, name: str, **context: Any) -> Codec:
        return codec_of(self.adapter, self.protocol(name), **context)

    def steps(self, name: str, *, with_stdin: bool = True, **context: Any) -> list[Step]:
        """All that the codec says to a recording; the lines that were sent come first, as their times are not known."""
        fixture, codec = self.get(name), self.codec(name, **context)
        streams = [
            *((Source.STDIN, line) for line in fixture.stdin if with_stdin),
            *((Source.STDOUT, line) for line in fixture.stdout_lines),
            *((Source.STDERR, line) for line in fixture.stderr.splitlines()),
        ]
        steps = [*codec.start()]
        for source, line in streams:
            steps += codec.receive(line, source)
        return [*steps, *codec.finish(fixture.exit)]

    def facts(self, name: str, *kinds: type, **options: Any) -> list[Any]:
        """The facts of these kinds; without kinds all but the silent ones."""
        return told(self.steps(name, **options), *kinds)

    def events(self, name: str, **stream: Any) -> list[AgentEvent]:
        """As `amux parse` gives them."""
        return parsed(self.adapter, self.get(name), self.protocol(name), RUN_ID, **stream)

    def lines(self, protocol: str) -> list[bytes]:
        """One line of each kind that a protocol has."""
        found: dict[str, bytes] = {}
        for name in self.names:
            if self.get(name).protocol == protocol:
                for line in self.get(name).stdout_lines:
                    found.setdefault(_kind_of(load_object(line) or {}), line)
        return [line for line in found.values() if len(line) < 20_000]


def _kind_of(line: dict[str, Any]) -> str:
    payload, params = mapping(line.get("payload")), mapping(line.get("params"))
    parts = [line, *map(mapping, (line.get("assistantMessageEvent"), line.get("message"), params.get("update")))]
    parts.append(mapping(payload.get("event")))
    keys = ("type", "command", "method", "toolName", "role", "sessionUpdate")
    return str(["id" in line, *(part.get(key) for part in parts for key in keys)])


def codec_of(adapter: Adapter, protocol: str, **context: Any) -> Codec:
    settings = {"agent": adapter.agent, "protocol": protocol, "cwd": PLACE, **context}
    return adapter.protocols[protocol].codec(CodecContext(**settings))


def receive(codec: Codec, *lines: Any, source: Source = Source.STDOUT) -> list[Step]:
    """What the codec says to these lines: bytes as they are, anything else as JSON."""
    raw = [line if isinstance(line, bytes) else as_line(line) for line in lines]
    return [step for line in raw for step in codec.receive(line, source)]


def as_line(native: Any) -> bytes:
    return json.dumps(native, separators=(",", ":")).encode()


def told(steps: Iterable[Step], *kinds: type) -> list[Any]:
    """The facts of these kinds; without kinds all but the silent ones."""
    facts = [step for step in steps if isinstance(step, Fact)]
    if kinds:
        return [fact for fact in facts if isinstance(fact, kinds)]
    return [fact for fact in facts if not isinstance(fact, Ignored | LogLine)]


# -- what the agent says


def update(kind: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    """A fragment of the model's message."""
    return {"type": "message_update", "assistantMessageEvent": {"type": kind, "contentIndex": index, **fields}}


def answer(*blocks: Any, **fields: Any) -> dict[str, Any]:
    """The complete message of the model: blocks, or texts."""
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"type": "message_end", "message": {"role": "assistant", "content": content, "stopReason": "stop", **fields}}


def failed(message: str, **fields: Any) -> dict[str, Any]:
    """The message of a model call that failed."""
    return answer(stopReason="error", errorMessage=message, **fields)


def call_block(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def result(shown: str, **details: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": shown}], **({"details": details} if details else {})}


def starts(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_execution_start", "toolCallId": call_id, "toolName": name, "args": arguments}


def goes_on(call_id: str, name: str, so_far: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_execution_update", "toolCallId": call_id, "toolName": name, "partialResult": so_far}


def ends(call_id: str, name: str, came: dict[str, Any], *, is_error: bool = False) -> dict[str, Any]:
    line = {"type": "tool_execution_end", "toolCallId": call_id, "toolName": name, "result": came}
    return {**line, "isError": is_error}


BEGINS = {"type": "agent_start"}
SETTLED = {"type": "agent_settled"}


def agent_end(**fields: Any) -> dict[str, Any]:
    """`willRetry` since pi 0.87, `isTerminal` in omp."""
    return {"type": "agent_end", "messages": [], **fields}


class Talk:
    """A live codec in rpc mode, and an agent that says what the test wants."""

    def __init__(self, adapter: Adapter, **context: Any) -> None:
        self.codec = codec_of(adapter, "rpc", **{"prompt": "hello", **context})
        self.steps: list[Step] = []
        self._read = 0
        self.do(self.codec.start())

    def do(self, steps: Iterable[Step]) -> list[Step]:
        self.steps += (new := list(steps))
        return new

    # -- the agent

    def says(self, *lines: Any) -> list[Step]:
        return self.do(receive(self.codec, *lines))

    def answers(self, request_id: str, command: str, **data: Any) -> list[Step]:
        line = {"id": request_id, "type": "response", "command": command, "success": True}
        return self.says({**line, **({"data": data} if data else {})})

    def refuses(self, request_id: str | None, command: str, error: str) -> list[Step]:
        line = {"type": "response", "command": command, "success": False, "error": error}
        return self.says(line if request_id is None else {"id": request_id, **line})

    def asks(self, key: str, method: str, **fields: Any) -> list[Step]:
        return self.says({"type": "extension_ui_request", "id": key, "method": method, **fields})

    # -- we

    def want(self, action: AnyAction) -> list[Step]:
        return self.do(self.codec.request(action))

    def sent(self) -> list[Any]:
        """What was sent since the last look; the end of our input is "EOF"."""
        new = [step for step in self.steps[self._read :] if isinstance(step, Effect)]
        self._read = len(self.steps)
        return [_shown(effect) for effect in new]


def _shown(effect: Effect) -> Any:
    match effect:
        case WriteStdin(data):
            assert data.endswith(b"\n")
            assert data.count(b"\n") == 1
            return json.loads(data)
        case CloseStdin():
            return "EOF"
    return effect
