"""What copilot says and what we answer, as a test reads best. And the recordings of the real CLI."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.unit.adapters.parsed_recordings import parsed

from agent_mux.actions import AnyAction
from agent_mux.adapter import Codec, CodecContext, Exit, Source, Step
from agent_mux.effects import CloseStdin, Refuse, WriteStdin
from agent_mux.events import AgentEvent
from agent_mux.facts import Fact, Ignored
from agent_mux.testing.fixtures import Fixture, find_fixtures, load_fixture
from agent_mux_adapters.copilot import ADAPTER
from agent_mux_adapters.copilot.argv import HEADLESS
from agent_mux_adapters.copilot.settings import HeadlessContext

FOLDERS = {path.name: path for path in find_fixtures(Path(__file__).parents[4] / "fixtures", "copilot")}
NAMES = tuple(sorted(name for name, path in FOLDERS.items() if load_fixture(path).protocol in ADAPTER.protocols))
PLACE = "/home/dev/project"
SESSION = "11111111-2222-4333-8444-555555555555"


@cache
def recording(name: str) -> Fixture:
    return load_fixture(FOLDERS[name])


def events_of(name: str, **stream: Any) -> list[AgentEvent]:
    """The events of a recording, as `amux parse` gives them."""
    fixture = recording(name)
    return parsed(ADAPTER, fixture, fixture.protocol, "01ARZ3NDEKTSV4RRFFQ69G5FAV", **stream)


def new_codec(protocol: str = HEADLESS, **context: Any) -> Codec:
    """A codec with this context; without a prompt it only looks on."""
    kind = HeadlessContext if protocol == HEADLESS else CodecContext
    return ADAPTER.protocols[protocol].codec(
        kind(**{"agent": "copilot", "protocol": protocol, "cwd": PLACE, **context})
    )


def receive(codec: Codec, *lines: Any, source: Source = Source.STDOUT) -> list[Step]:
    """What the codec says to these lines: bytes as they are, anything else as JSON."""
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return [step for line in raw for step in codec.receive(line, source)]


def speaking(steps: Iterable[Step]) -> list[Step]:
    """The facts that say something."""
    return [step for step in steps if isinstance(step, Fact) and not isinstance(step, Ignored)]


def event(kind: str, agent: str | None = None, /, **data: Any) -> dict[str, Any]:
    """A session event, as `--output-format json` prints it."""
    envelope = {"id": "e", "timestamp": "2026-11-22T02:00:00.000Z", "parentId": None}
    return {"type": kind, "data": data, **envelope, **({"agentId": agent} if agent else {})}


def facts_of(*events: dict[str, Any], **context: Any) -> list[Step]:
    """What these events say."""
    return speaking(receive(new_codec("json", **context), *events))


def done_with(call_id: str, content: str = "", **data: Any) -> dict[str, Any]:
    """A call succeeded."""
    result = {"content": content, **data.pop("result", {})}
    return event("tool.execution_complete", toolCallId=call_id, success=True, result=result, **data)


def failed_with(call_id: str, message: str) -> dict[str, Any]:
    """A call failed."""
    return event("tool.execution_complete", toolCallId=call_id, success=False, error={"message": message})


def calls(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """A call begins."""
    return event("tool.execution_start", toolCallId=call_id, toolName=name, arguments=arguments)


class Talk:
    """A live headless codec, and a runtime that says what the test wants."""

    def __init__(self, **context: Any) -> None:
        self.codec = new_codec(**{"prompt": "hello", **context})
        self.steps: list[Step] = []
        self._read = 0
        self.do(self.codec.start())

    def do(self, steps: Iterable[Step]) -> list[Step]:
        self.steps += (new := list(steps))
        return new

    # -- the runtime

    def says(self, *lines: Any) -> list[Step]:
        return self.do(receive(self.codec, *lines))

    def answers(self, request_id: int, result: Any) -> list[Step]:
        return self.says({"jsonrpc": "2.0", "id": request_id, "result": result})

    def refuses(self, request_id: int, message: str) -> list[Step]:
        return self.says({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32603, "message": message}})

    def tells(self, kind: str, agent: str | None = None, /, **data: Any) -> list[Step]:
        params = {"sessionId": SESSION, "event": event(kind, agent, **data)}
        return self.says({"jsonrpc": "2.0", "method": "session.event", "params": params})

    def asks(self, request_id: Any, method: str, **params: Any) -> list[Step]:
        return self.says({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})

    def opened(self) -> "Talk":
        """The handshake is over, and the first prompt is sent."""
        self.answers(1, {"protocolVersion": 3})
        self.answers(2, {"sessionId": SESSION, "workspacePath": "/w"})
        return self

    def running(self) -> "Talk":
        """The first turn runs; the requests 1 to 4 were made and read."""
        self.opened()
        self.answers(3, {"success": True})
        self.takes_up(4, "m1")
        self.sent()
        return self

    def takes_up(self, request_id: int, message: str) -> None:
        """A prompt was accepted, and its turn begins."""
        self.answers(request_id, {"messageId": message})
        self.tells("user.message", messageId=message, content="hello")
        self.tells("assistant.turn_start", turnId="0")

    def hands_back(self, *, aborted: bool = False) -> list[Step]:
        """The turn is over, and nothing goes on in the background."""
        return [*self.tells("assistant.idle", aborted=aborted), *self.tells("session.idle")]

    # -- we

    def want(self, action: AnyAction) -> list[Step]:
        return self.do(self.codec.request(action))

    def sent(self) -> list[Any]:
        """What was sent since the last look; the end of our input is "EOF"."""
        new = [step for step in self.steps[self._read :] if isinstance(step, WriteStdin | CloseStdin | Refuse)]
        self._read = len(self.steps)
        return [_shown(effect) for effect in new]

    def methods(self) -> list[str]:
        """The methods of what was sent since the last look."""
        return [one if isinstance(one, str) else one["method"] for one in self.sent()]

    def facts(self) -> list[Step]:
        return speaking(self.steps)


def _shown(effect: Any) -> Any:
    match effect:
        case WriteStdin(data):
            head, _, body = data.partition(b"\r\n\r\n")
            assert head == b"Content-Length: %d" % len(body)
            return json.loads(body)
        case CloseStdin():
            return "EOF"
    return effect


def gone(codec: Codec, code: int = 0) -> list[Step]:
    """What is said when the process is gone."""
    return speaking(codec.finish(Exit(code=code)))
