"""Asking the model: what is sent, what is told while it speaks, what happens when it fails."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import anyio
from msgspec.structs import replace

from agent_loop.behavior import ThinkingDecay
from agent_loop.context.estimation import estimate_tokens
from agent_loop.context.tool_outputs import elide_stale_reads, without_any_image
from agent_loop.errors import AgentLoopError, ContextExceededError, ProviderError, words_of
from agent_loop.events import (
    ContextCompacted,
    ContextFilling,
    MessageAbandoned,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    UsageReported,
)
from agent_loop.hooks.contexts import StreamChunk, TransformContext, TransformSystem, UsageTold
from agent_loop.loop.responses import is_object, sound, storable
from agent_loop.loop.retry import with_retries
from agent_loop.loop.run import Run
from agent_loop.providers import (
    Chunk,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    OnChunk,
    TextChunk,
    ThinkingChunk,
)
from agent_loop.usage import Usage

MAX_OVERFLOW_RECOVERIES = 3
"""Times that the context is made smaller for one call, after the provider found it too large."""


@dataclass(slots=True)
class _Spoken:
    """Whether anything was told of an answer that is still coming."""

    begun: bool = False


async def answered(run: Run, request: ModelRequest) -> ModelResponse:
    """The answer of this turn. Raises `ProviderError` when there is none after all retries and recoveries.

    A request that was too large is made again, smaller. Source: phi-core, "Context Overflow Recovery".
    """
    for _ in range(MAX_OVERFLOW_RECOVERIES):
        try:
            return await call(run, request)
        except ContextExceededError:
            if run.behavior.context.strategy == "off":
                raise
            request = await prepared(run, force=True)
    return await call(run, request)


async def prepared(run: Run, *, force: bool = False) -> ModelRequest:
    """What this turn sends: history, compacted and transformed; system prompt, transformed; tools; settings."""
    history = run.sendable()
    run.fitted = len(history)
    fitted = await run.context.fit(history, overhead_tokens=_overhead(run), force=force)
    if fitted.compaction is not None:
        done = fitted.compaction
        await run.tell(
            ContextCompacted(
                loop_id=run.loop_id,
                tier=done.tier,
                tokens_before=done.tokens_before,
                tokens_after=done.tokens_after,
                summary=done.summary,
            )
        )
    if fitted.is_exhausted:
        raise ContextExceededError(
            "the context is too long for the model and cannot be made smaller; begin a new session",
            provider=run.provider.id,
            used_tokens=fitted.used_tokens,
            max_tokens=fitted.max_tokens,
        )
    if fitted.compaction is None and fitted.is_filling:
        await run.tell(
            ContextFilling(loop_id=run.loop_id, used_tokens=fitted.used_tokens, max_tokens=fitted.max_tokens)
        )
    sent = elide_stale_reads(fitted.messages) if run.behavior.elide_stale_reads else fitted.messages
    if not run.provider.capabilities.vision:
        sent = without_any_image(sent)
    messages = TransformContext(messages=list(sent), **run.where)
    await run.hooks.fire("context:transform", messages)
    system = TransformSystem(system=run.system, **run.where)
    await run.hooks.fire("system:transform", system)
    return ModelRequest(
        system=system.system,
        messages=run.toolset.to_wire(messages.messages),
        tools=run.toolset.definitions(),
        tool_choice=run.toolset.wire(run.behavior.tool_choice) if run.toolset else "none",
        settings=settings_of(run),
        output_schema=_native_schema(run),
    )


def _overhead(run: Run) -> int:
    return estimate_tokens(run.system) + run.tool_tokens


def _native_schema(run: Run) -> dict[str, object] | None:
    schema = run.behavior.output_schema
    if schema is None or not run.provider.capabilities.structured_output or not is_object(schema):
        return None
    return dict(schema)


def settings_of(run: Run) -> ModelSettings:
    """How the model is to answer in this turn."""
    behavior = run.behavior
    plain = ModelSettings(
        max_tokens=behavior.max_tokens,
        temperature=behavior.temperature,
        top_p=behavior.top_p,
        top_k=behavior.top_k,
        thinking=behavior.thinking,
        thinking_budget=behavior.thinking_budget,
        cache=behavior.cache,
        parallel_tool_calls=False if behavior.tool_execution == "sequential" else None,
        timeout=behavior.request_timeout,
    )
    base = plain.thinking_tokens
    if behavior.thinking_decay is None or not base:
        return plain
    return replace(plain, thinking_budget=decayed_budget(base, behavior.thinking_decay, run.turn))


def decayed_budget(base: int, decay: ThinkingDecay | Callable[[int, int], float] | None, turn: int) -> int:
    """The thinking budget of this turn (from 0) in tokens, always within 0 and `base`.

    A `ThinkingDecay` shrinks it geometrically from `after_turn` on, down to its floor. A function is asked with the
    turn and the base; what is no number counts as the base.
    """
    if decay is None:
        return base
    wanted = _tapered(base, decay, turn) if isinstance(decay, ThinkingDecay) else float(decay(turn, base))
    if math.isnan(wanted):
        return base
    return int(max(0, min(base, wanted)))


def _tapered(base: int, decay: ThinkingDecay, turn: int) -> float:
    if turn < decay.after_turn:
        return base
    return max(decay.floor, base * decay.factor ** (turn - decay.after_turn + 1))


async def call(run: Run, request: ModelRequest, *, shown: bool = True) -> ModelResponse:
    """One call with all wrappers around it, repeated where that can help; paid for and made sound.

    `shown=False`: nothing of it is told, as with summaries. Raises `ProviderError`, and nothing else of providers.
    """
    respond = run.hooks.around_model_call(partial(_respond, run, shown))
    with _provider_errors(run):
        answer = storable(await respond(request), run.provider.id)
    await _paid(run, answer.usage)
    named = ModelResponse(tuple(map(run.toolset.to_canonical, answer.messages)), answer.usage)
    return sound(named, run.call_ids, run.surroundings.new_id)


async def _paid(run: Run, usage: Usage) -> None:
    run.tracker.add_usage(usage)
    total = run.tracker.usage
    await run.tell(UsageReported(loop_id=run.loop_id, usage=usage, total=total))
    if run.hooks.listens("usage"):
        await run.hooks.fire("usage", UsageTold(usage=usage, total=total, **run.where))


async def _respond(run: Run, shown: bool, request: ModelRequest) -> ModelResponse:
    spoken = _Spoken()

    async def on_chunk(chunk: Chunk) -> None:
        if shown:
            spoken.begun = True
            await _tell_chunk(run, chunk)

    async def on_retry(attempt: int, max_attempts: int, error: ProviderError, delay: float) -> None:
        await _abandon(run, spoken)
        await run.tell(
            Retrying(
                loop_id=run.loop_id,
                attempt=attempt,
                max_attempts=max_attempts,
                kind=error.kind,
                message=str(error),
                delay=delay,
            )
        )

    around = run.surroundings
    try:
        response = await with_retries(
            partial(_once, run, request, on_chunk),
            run.behavior.retry,
            sleep=around.sleep,
            chance=around.chance,
            on_retry=on_retry,
        )
        spoken.begun = False
        return response
    finally:
        await _abandon(run, spoken)


async def _once(run: Run, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
    with _provider_errors(run):
        return await run.provider.respond(request, on_chunk)


@contextmanager
def _provider_errors(run: Run) -> Iterator[None]:
    """Whatever a provider or a wrapper raises is an error of the provider."""
    try:
        yield
    except AgentLoopError:
        raise
    except Exception as error:
        raise ProviderError(f"{type(error).__name__}: {words_of(error)}", provider=run.provider.id) from error


async def _abandon(run: Run, spoken: _Spoken) -> None:
    """What was told of an answer counts for nothing."""
    if spoken.begun:
        spoken.begun = False
        with anyio.CancelScope(shield=True):
            await run.tell(MessageAbandoned(loop_id=run.loop_id))


async def _tell_chunk(run: Run, chunk: Chunk) -> None:
    match chunk:
        case TextChunk(text):
            await run.tell(TextDelta(loop_id=run.loop_id, text=text))
            if run.hooks.listens("stream:text"):
                await run.hooks.fire("stream:text", StreamChunk(text=text, **run.where))
        case ThinkingChunk(text):
            await run.tell(ThinkingDelta(loop_id=run.loop_id, text=text))
            if run.hooks.listens("stream:thinking"):
                await run.hooks.fire("stream:thinking", StreamChunk(text=text, **run.where))
        case _:
            name = run.toolset.canonical(chunk.name)
            await run.tell(ToolInputDelta(loop_id=run.loop_id, call_id=chunk.id, name=name, delta=chunk.delta))
