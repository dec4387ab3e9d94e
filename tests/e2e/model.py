"""The scripted model in a thread of its own: the client under test may then run on any event loop, or on none."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from agent_mux_testing.model_server import RecordedRequest, Script, ScriptedModelServer, ScriptStep

AUXILIARY = "aux"
ANSWER_KINDS = frozenset({"messages", "responses", "chat", "generate", AUXILIARY})


class ScriptedModel:
    """A model that says what it was told to, and remembers what it was asked."""

    def __init__(self, server: ScriptedModelServer, portal: BlockingPortal) -> None:
        self._server = server
        self._portal = portal
        self.url = server.url

    @property
    def requests(self) -> list[RecordedRequest]:
        """Requests for an answer, oldest first; not those for lists of models or counts of tokens."""
        return [request for request in self._server.requests if request.kind in ANSWER_KINDS]

    @property
    def unused_steps(self) -> tuple[ScriptStep, ...]:
        """What it was never asked to say."""
        return self._server.unused_steps

    def answered(self, step: int) -> list[RecordedRequest]:
        """The requests that a step of the script answered."""
        return [request for request in self.requests if request.step == step]

    def received(self, text: str, request: int = -1) -> bool:
        """Whether the conversation of a request holds this text. Not, where the model was never asked."""
        if not self.requests:
            return False
        body = self.requests[request].body
        return json.dumps(text)[1:-1] in json.dumps(body)

    async def wait_for_requests(self, count: int) -> None:
        """Wait until that many requests of any kind have come. Bound it."""
        waiting = self._portal.start_task_soon(self._server.requested, count)
        await anyio.to_thread.run_sync(waiting.result, abandon_on_cancel=True)


@contextmanager
def serve(*steps: ScriptStep, first_id: int = 1) -> Iterator[ScriptedModel]:
    """A model with this script. `first_id`: of two models that one session hears, the ids must not be the same."""

    async def make() -> ScriptedModelServer:
        return ScriptedModelServer(Script(steps=steps), first_id=first_id)

    with start_blocking_portal("asyncio") as portal:
        server = portal.call(make)
        with portal.wrap_async_context_manager(server):
            yield ScriptedModel(server, portal)
