"""The scripted model as a local HTTP server for the duration of an `async with` block."""

import asyncio
import contextlib
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

from aiohttp import web

from agent_mux_testing.model_server import anthropic, bedrock, chat, gemini, responses
from agent_mux_testing.model_server.requests import (
    AnswerSource,
    ChosenStep,
    Matcher,
    RecordedRequest,
    RequestContent,
    redact,
)
from agent_mux_testing.model_server.script import HttpError, Script, ScriptStep, parse_script
from agent_mux_testing.model_server.streams import SSE_TYPE, BinaryEvent, Ids, ServerEvent

MAX_REQUEST_SIZE = 64 << 20  # bytes; conversations with images are long
SHUTDOWN_GRACE = 0.1  # seconds; handlers that hang end at once, as `_closing` is set first


class ScriptedModelServer:
    """A server that answers Anthropic, OpenAI (Responses and chat), Gemini and Bedrock requests from a script.

        async with ScriptedModelServer({"steps": [{"blocks": [{"type": "text", "text": "Hello"}]}]}) as server:
            ...  # ANTHROPIC_BASE_URL or GOOGLE_GEMINI_BASE_URL = server.url; OPENAI_BASE_URL = f"{server.url}/v1"
            # AZURE_OPENAI_ENDPOINT or GOOGLE_VERTEX_BASE_URL or AWS_ENDPOINT_URL_BEDROCK_RUNTIME = server.url
        assert server.requests[0].step == 0

    It runs on asyncio; a program on another event loop starts `python -m agent_mux_testing.model_server` instead.
    """

    def __init__(
        self,
        script: Script | Mapping[str, Any] | AnswerSource,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        log: Path | None = None,
        first_id: int = 1,
    ) -> None:
        """Prepare a server that answers from a script, or from a source that computes each answer.

        `first_id` is the first number in its ids, so that two servers can have different ids.
        """
        self.requests: list[RecordedRequest] = []
        """The requests so far, oldest first."""
        script = parse_script(script) if isinstance(script, Mapping) else script
        self._matcher: AnswerSource = Matcher(script) if isinstance(script, Script) else script
        self._ids = Ids(first_id)
        self._host, self._port, self._log = host, port, log
        self._started = time.monotonic()
        self._arrived = asyncio.Condition()
        self._closing = asyncio.Event()
        # A client that disconnects cancels its handler, so that a step that hangs ends with it.
        self._runner = web.AppRunner(
            _application(self), access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_GRACE
        )

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return int(self._runner.addresses[0][1])

    @property
    def url(self) -> str:
        """The base URL, without a path."""
        return f"http://{self._host}:{self.port}"

    @property
    def unused_steps(self) -> tuple[ScriptStep, ...]:
        """The steps of the script that have answered no request yet."""
        return self._matcher.unused

    async def requested(self, count: int) -> None:
        """Wait until that many requests have arrived. The caller bounds the time: they may never arrive."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        await self._runner.cleanup()

    async def messages(self, request: web.Request) -> web.StreamResponse:
        """Answer a request to `POST /v1/messages`."""
        body = await _json_body(request)
        aux = not RequestContent.of(body).has_tools
        return await self._answer(request, body, anthropic, "aux" if aux else "messages")

    async def responses(self, request: web.Request) -> web.StreamResponse:
        """Answer a request to `POST /v1/responses`."""
        return await self._answer(request, await _json_body(request), responses, "responses")

    async def chat_completions(self, request: web.Request) -> web.StreamResponse:
        """Answer a request to `POST /v1/chat/completions`."""
        body = await _json_body(request)
        return await self._answer(request, body, chat, "chat" if RequestContent.of(body).has_tools else "aux")

    async def generate_content(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /v1beta/models/<model>:<method>`, and the same below `/v1beta1/projects/...` (Vertex AI)."""
        body = await _json_body(request)
        model, method = request.match_info["model"], request.match_info["method"]
        if method == "countTokens":
            await self._record(request, body, "count_tokens", None)
            return web.json_response({"totalTokens": gemini.TOKEN_COUNT})
        streams = method == "streamGenerateContent"
        kind = "generate" if RequestContent.of(body).has_tools else "aux"
        return await self._answer(request, body, gemini, kind, model=model, streams=streams)

    async def converse_stream(self, request: web.Request) -> web.StreamResponse:
        """Answer a request to `POST /model/<model>/converse-stream`."""
        body = await _json_body(request)
        return await self._answer(request, body, bedrock, "converse", model=request.match_info["model"], streams=True)

    async def count_tokens(self, request: web.Request) -> web.StreamResponse:
        """Answer a request to `POST /v1/messages/count_tokens`."""
        await self._record(request, await _json_body(request), "count_tokens", None)
        return web.json_response({"input_tokens": anthropic.TOKEN_COUNT})

    async def models(self, request: web.Request) -> web.StreamResponse:
        """Answer `GET /v1/models` with an empty list, in the formats of Anthropic and OpenAI."""
        await self._record(request, None, "models", None)
        return web.json_response({"object": "list", "data": [], "models": [], "has_more": False})

    async def unknown(self, request: web.Request) -> web.StreamResponse:
        """Record any other request, and answer with 404."""
        await self._record(request, await _json_body(request), "unknown", None)
        missing = {"type": "not_found_error", "message": f"no such route: {request.path}"}
        return web.json_response({"type": "error", "error": missing}, status=404)

    async def _answer(  # noqa: PLR0913  # properties of the request that depend on the API
        self,
        request: web.Request,
        body: Any,
        api: ModuleType,
        kind: str,
        *,
        model: str | None = None,
        streams: bool | None = None,
    ) -> web.StreamResponse:
        content = RequestContent.of(body, model)
        choice = self._choose(content, body, kind)
        await self._record(request, body, kind, choice.index)
        step = choice.step
        if step.pre_delay:
            await self._pause(step.pre_delay)
        error = step.error or _mismatch(choice, api.PARTS)
        if error is not None:
            return _http_error(error)
        if streams if streams is not None else isinstance(body, dict) and body.get("stream"):
            content_type = getattr(api, "CONTENT_TYPE", SSE_TYPE)
            return await self._send(request, step, api.stream(step, content.model, self._ids), content_type)
        if step.hang:
            await self._closing.wait()
        if step.drop and request.transport is not None:
            request.transport.close()
        return web.json_response(api.reply(step, content.model, self._ids), headers=self._headers(step))

    def _choose(self, content: RequestContent, body: Any, kind: str) -> ChosenStep:
        choice = self._matcher.choose(content, aux=kind == "aux")
        fallback = gemini.schema_example(body) if kind == "aux" and choice.index is None else None
        return choice if fallback is None else ChosenStep(fallback, None)

    async def _send(
        self, request: web.Request, step: ScriptStep, events: Iterable[ServerEvent | BinaryEvent], content_type: str
    ) -> web.StreamResponse:
        headers = {"content-type": content_type, "cache-control": "no-cache", **self._headers(step)}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        with contextlib.suppress(ConnectionResetError):  # the client may disconnect at any time
            for event in events:
                await response.write(event.encode())
                if step.delay:
                    await self._pause(step.delay)
            if step.garbage is not None:
                await response.write(step.garbage.encode())
            if step.hang:
                await self._closing.wait()
            if step.drop and request.transport is not None:
                request.transport.close()
        return response

    async def _pause(self, seconds: float) -> None:
        """Wait that long, or until the server closes."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    def _headers(self, step: ScriptStep) -> dict[str, str]:
        return {"request-id": self._ids.new("req"), **step.headers}

    async def _record(self, request: web.Request, body: Any, kind: str, step: int | None) -> None:
        record = RecordedRequest(
            at=round(time.monotonic() - self._started, 3),
            method=request.method,
            path=request.path_qs,
            kind=kind,
            step=step,
            headers=redact(request.headers),
            body=body,
        )
        if self._log is not None:
            with self._log.open("ab") as file:
                file.write(record.log_line())
        async with self._arrived:
            self.requests.append(record)
            self._arrived.notify_all()


def _application(server: ScriptedModelServer) -> web.Application:
    application = web.Application(client_max_size=MAX_REQUEST_SIZE)
    for prefix in ("", "/v1", "/openai", "/openai/v1", "/openai/deployments/{deployment}"):
        application.router.add_post(f"{prefix}/messages", server.messages)
        application.router.add_post(f"{prefix}/messages/count_tokens", server.count_tokens)
        application.router.add_post(f"{prefix}/responses", server.responses)
        application.router.add_post(f"{prefix}/chat/completions", server.chat_completions)
        application.router.add_get(f"{prefix}/models", server.models)
    application.router.add_post("/{version:v1(?:beta|alpha)?}/models/{model}:{method}", server.generate_content)
    google_cloud = "/{version:v1(?:beta1)?}/projects/{project}/locations/{location}/publishers/google"
    application.router.add_post(google_cloud + "/models/{model}:{method}", server.generate_content)
    application.router.add_post("/model/{model}/converse-stream", server.converse_stream)
    application.router.add_route("*", "/{path:.*}", server.unknown)
    return application


async def _json_body(request: web.Request) -> Any:
    """Return the parsed body; None when empty, and the first bytes when it is not JSON."""
    raw = await request.read()
    if not raw:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return {"unreadable": repr(raw[:300])}


def _mismatch(choice: ChosenStep, parts: str) -> HttpError | None:
    """Return an error when the step is written for another API; None otherwise."""
    if getattr(choice.step, parts) is not None or not (choice.step.blocks or choice.step.items):
        return None
    message = f"bad script: this API needs `{parts}`, which step {choice.index} lacks"
    return HttpError(400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}})


def _http_error(error: HttpError) -> web.Response:
    if isinstance(error.body, str):
        return web.Response(text=error.body, status=error.status, headers=error.headers)
    return web.json_response({} if error.body is None else error.body, status=error.status, headers=error.headers)
