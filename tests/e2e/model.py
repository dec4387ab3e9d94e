"""The scripted model in its own thread, so that the client under test can use any event loop, or none."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from agent_mux_testing.model_server import RecordedRequest, Script, ScriptedModelServer, ScriptStep

AUXILIARY = "aux"
ANSWER_KINDS = frozenset({"messages", "responses", "chat", "generate", AUXILIARY})


class ScriptedModel:
    """A running scripted model, and the requests that it received."""

    def __init__(self, server: ScriptedModelServer, portal: BlockingPortal) -> None:
        self._server = server
        self._portal = portal
        self.url = server.url

    @property
    def requests(self) -> list[RecordedRequest]:
        """Requests for an answer, oldest first, without requests for model lists or token counts."""
        return [request for request in self._server.requests if request.kind in ANSWER_KINDS]

    @property
    def unused_steps(self) -> tuple[ScriptStep, ...]:
        """Steps of the script that no request has used."""
        return self._server.unused_steps

    def answered(self, step: int) -> list[RecordedRequest]:
        """Return the requests that were answered by this step of the script."""
        return [request for request in self.requests if request.step == step]

    def received(self, text: str, request: int = -1) -> bool:
        """Return whether the body of a request (the last by default) contains this text; False without requests."""
        if not self.requests:
            return False
        body = self.requests[request].body
        return json.dumps(text)[1:-1] in json.dumps(body)

    async def stop(self) -> None:
        """Stop the server, so that its port refuses connections."""
        await anyio.to_thread.run_sync(self._portal.call, self._server.__aexit__, None, None, None)

    async def wait_for_requests(self, count: int) -> None:
        """Wait until `count` requests of any kind have arrived. Callers must set a timeout."""
        waiting = self._portal.start_task_soon(self._server.requested, count)
        await anyio.to_thread.run_sync(waiting.result, abandon_on_cancel=True)


@contextmanager
def serve(*steps: ScriptStep, first_id: int = 1) -> Iterator[ScriptedModel]:
    """Run a model with this script. Two models in one session need different `first_id`s."""

    async def make() -> ScriptedModelServer:
        return ScriptedModelServer(Script(steps=steps), first_id=first_id)

    with start_blocking_portal("asyncio") as portal:
        server = portal.call(make)
        with portal.wrap_async_context_manager(server):
            yield ScriptedModel(server, portal)
