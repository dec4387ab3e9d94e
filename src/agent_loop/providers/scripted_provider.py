"""A deterministic offline provider that plays a script: for demos and tests."""

from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path

import anyio
import msgspec

from agent_loop.errors import ConfigurationError, ProviderError
from agent_loop.messages import ToolCall
from agent_loop.providers.chunking import emit_chunk, message_chunks
from agent_loop.providers.playback import (
    SCRIPTED,
    RequestExcerpt,
    chunks_of,
    error_of,
    excerpt_of,
    fill_placeholders,
    highest_call_number,
    is_match,
    message_of,
    output_call,
    text_of,
    tool_call,
)
from agent_loop.providers.provider import ModelRequest, ModelResponse, OnChunk, ProviderCapabilities
from agent_loop.providers.script import Script, Step, load_script, parse_script, validate_script

Answer = Step | ModelResponse | ProviderError | str
"""A plain text is a step with that text."""
Scriptable = Answer | Callable[[ModelRequest], Answer]
"""A function receives the request when its step is selected."""

BUILT_IN = {"demo": "demo.toml"}


class ScriptedProvider:
    """Plays a script. Callers share one position: give sub-agents `task` conditions or their own providers."""

    id = SCRIPTED

    def __init__(
        self,
        script: Script | Iterable[Scriptable] = (),
        *,
        closing: str | None = None,
        model: str = "script",
        capabilities: ProviderCapabilities | None = None,
        keep_requests: bool = True,
    ) -> None:
        given: Iterable[Scriptable] = script.steps if isinstance(script, Script) else script
        resolved = script if isinstance(script, Script) else Script(closing=closing, model=model)
        self._steps = [_as_step(each) for each in given]
        validate_script(Script(steps=tuple(step for step in self._steps if isinstance(step, Step))))
        self.model = resolved.model
        self.capabilities = capabilities or resolved.capabilities
        self.requests: list[ModelRequest] = []
        """All requests, for tests."""
        self._closing = resolved.closing
        self._keep_requests = keep_requests
        self._uses = [0] * len(self._steps)
        self._request_count = 0
        self._last_call_number = 0
        self._last_step: str | None = None
        self._reached: dict[str, anyio.Event] = {}
        self._released: dict[str, anyio.Event] = {}

    @classmethod
    def from_name(cls, rest: str) -> "ScriptedProvider":
        """Create a provider from the part after `scripted:`. Raises `ConfigurationError`.

        "demo" is a script that repairs a small repository; everything else is the path of a script.
        """
        if not rest:
            raise ConfigurationError("'scripted' lacks a script; use scripted:PATH, or scripted:demo (see `amux demo`)")
        if rest in BUILT_IN:
            data = files("agent_loop.providers").joinpath("scripts", BUILT_IN[rest]).read_bytes()
            return cls(parse_script(data, "toml", BUILT_IN[rest]), keep_requests=False)
        return cls(load_script(Path(rest)), keep_requests=False)

    def release(self, name: str) -> None:
        """Release the step that waits for this name."""
        self._released.setdefault(name, anyio.Event()).set()

    async def reached(self, name: str) -> None:
        """Wait until a step waits for this name."""
        await self._reached.setdefault(name, anyio.Event()).wait()

    async def respond(self, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        """Play the first matching step. Raises the step's `ProviderError`, or one if no step matches."""
        self._request_count += 1
        request = msgspec.structs.replace(request, messages=tuple(request.messages))
        if self._keep_requests:
            self.requests.append(request)
        excerpt = excerpt_of(request.messages)
        answer = self._choose(request, excerpt)
        match answer:
            case ModelResponse():
                for chunk in message_chunks(answer.messages):
                    await emit_chunk(chunk, on_chunk)
                return answer
            case ProviderError():
                raise answer
            case _:
                return await self._play(answer, request, on_chunk)

    def _choose(self, request: ModelRequest, excerpt: RequestExcerpt) -> Step | ModelResponse | ProviderError:
        for at, step in enumerate(self._steps):
            if self._is_available(at, step, request, excerpt):
                self._uses[at] += 1
                answer = _as_answer(step(request)) if callable(step) else step
                self._last_step = answer.name if isinstance(answer, Step) else None
                return fill_placeholders(answer, excerpt) if isinstance(answer, Step) else answer
        if self._closing is not None:
            return Step(text=self._closing)
        return ProviderError(
            f"no step of the script matches request {self._request_count} ({sum(self._uses)} played, "
            f"{len(self._steps)} steps in total); add a step or a closing text",
            provider=self.id,
        )

    def _is_available(self, at: int, step: object, request: ModelRequest, excerpt: RequestExcerpt) -> bool:
        if not isinstance(step, Step):
            return self._uses[at] == 0
        has_uses_left = step.repeat is True or self._uses[at] < int(step.repeat)
        return has_uses_left and is_match(step, request, excerpt, self._last_step)

    async def _play(self, step: Step, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        calls = self._calls_of(step, request)
        text = text_of(step, request)
        chunks = chunks_of(step, text, calls)
        emitted = chunks if step.error is None else chunks[: step.error.after_chunks]
        for at in range(len(emitted) + 1):
            if step.wait and at == min(step.wait_after_chunks, len(emitted)):
                await self._wait(step.wait)
            if at < len(emitted):
                await emit_chunk(emitted[at], on_chunk)
        if step.error is not None:
            raise error_of(step.error)
        return ModelResponse((message_of(step, text, calls, self.model),), step.usage)

    async def _wait(self, name: str) -> None:
        self._reached.setdefault(name, anyio.Event()).set()
        await self._released.setdefault(name, anyio.Event()).wait()

    def _calls_of(self, step: Step, request: ModelRequest) -> list[ToolCall]:
        calls = []
        for each in (*step.tool_calls, *output_call(step, request)):
            if not each.id:
                self._last_call_number = max(self._last_call_number, highest_call_number(request)) + 1
            calls.append(tool_call(each, each.id or f"call_{self._last_call_number}"))
        return calls


def _as_step(given: Scriptable) -> Step | ModelResponse | ProviderError | Callable[[ModelRequest], Answer]:
    return given if callable(given) else _as_answer(given)


def _as_answer(given: Answer) -> Step | ModelResponse | ProviderError:
    return Step(text=given, templates=False) if isinstance(given, str) else given
