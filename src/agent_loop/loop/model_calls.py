"""Model calls: building the request, streaming the answer, retries and recovery from failures."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import anyio
from msgspec.structs import replace

from agent_loop.behavior import ThinkingDecay
from agent_loop.context.estimation import estimate_tokens
from agent_loop.context.manager import request_window
from agent_loop.context.tool_outputs import elide_stale_reads, replace_images
from agent_loop.errors import AgentLoopError, ContextExceededError, ProviderError, ProviderErrorKind, error_text
from agent_loop.events import (
    ContextCompacted,
    ContextFilling,
    MessageAbandoned,
    ModelChanged,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    UsageReported,
)
from agent_loop.hooks.contexts import StreamChunk, TransformContext, TransformSystem, UsageUpdated
from agent_loop.loop.responses import check_storable, describes_object, normalize_response
from agent_loop.loop.retry import call_with_retries
from agent_loop.loop.run import LoopRun
from agent_loop.output_types import schema_of_output
from agent_loop.providers import (
    Chunk,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    OnChunk,
    TextChunk,
    ThinkingChunk,
)
from agent_loop.tools.tool import mcp_origin_of
from agent_loop.usage import Usage

FAILOVER_KINDS: frozenset[ProviderErrorKind] = frozenset({"provider", "rate_limited", "quota", "auth", "network"})
"""Kinds of errors after which another model may answer."""
MAX_OVERFLOW_RECOVERIES = 3
"""How often one call is retried with a smaller context after the provider found it too large."""


@dataclass(slots=True)
class _StreamState:
    """Whether chunks of the current answer were emitted that a failure would invalidate."""

    has_chunks: bool = False


async def request_answer(run: LoopRun, request: ModelRequest) -> ModelResponse:
    """Return the model's answer for this turn. Raises `ProviderError` after all retries and recoveries.

    After `ContextExceededError`, the context is compacted and the request repeated. After other failures, the request
    is built anew for the next model.
    """
    while True:
        try:
            return await _request_with_recovery(run, request)
        except ProviderError as error:
            if not await use_next_model(run, error):
                raise
        request = await prepare_request(run)


async def _request_with_recovery(run: LoopRun, request: ModelRequest) -> ModelResponse:
    for _ in range(MAX_OVERFLOW_RECOVERIES):
        try:
            return await call_model(run, request)
        except ContextExceededError:
            if run.behavior.context.strategy == "off":
                raise
            request = await prepare_request(run, force=True)
    return await call_model(run, request)


async def use_next_model(run: LoopRun, error: ProviderError) -> bool:
    """Use the next fallback for the rest of the run. Return False if none is left or another model cannot help."""
    if error.kind not in FAILOVER_KINDS or not run.fallbacks:
        return False
    run.provider = run.fallbacks.pop(0)
    run.context.use_window(request_window(run.provider.capabilities.context_window, run.behavior.max_tokens))
    await run.emit(
        ModelChanged(
            loop_id=run.loop_id,
            provider=run.provider.id,
            model=run.provider.model,
            kind=error.kind,
            reason=str(error),
        )
    )
    return True


async def prepare_request(run: LoopRun, *, force: bool = False) -> ModelRequest:
    """Build the request of this turn: compacted and transformed messages, system prompt, tools and settings."""
    history = run.sendable()
    run.fitted = len(history)
    fitted = await run.context.fit(history, overhead_tokens=_overhead(run), force=force)
    if fitted.compaction is not None:
        applied = fitted.compaction
        await run.emit(
            ContextCompacted(
                loop_id=run.loop_id,
                tier=applied.tier,
                tokens_before=applied.tokens_before,
                tokens_after=applied.tokens_after,
                summary=applied.summary,
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
        await run.emit(
            ContextFilling(loop_id=run.loop_id, used_tokens=fitted.used_tokens, max_tokens=fitted.max_tokens)
        )
    sent = elide_stale_reads(fitted.messages) if run.behavior.elide_stale_reads else fitted.messages
    if not run.provider.capabilities.vision:
        sent = replace_images(sent)
    messages = TransformContext(messages=list(sent), **run.hook_fields)
    await run.hooks.fire("context:transform", messages)
    system = TransformSystem(system=run.system, **run.hook_fields)
    await run.hooks.fire("system:transform", system)
    return ModelRequest(
        system=system.system,
        messages=run.toolset.to_wire(messages.messages),
        tools=run.toolset.definitions(),
        tool_choice=run.toolset.wire(run.behavior.tool_choice) if run.toolset else "none",
        settings=settings_of(run),
        output_schema=_native_schema(run),
    )


def _overhead(run: LoopRun) -> int:
    return estimate_tokens(run.system) + run.tool_tokens


def _native_schema(run: LoopRun) -> dict[str, object] | None:
    output, able = run.behavior.output_schema, run.provider.capabilities
    if output is None or not able.structured_output:
        return None
    schema = schema_of_output(output)
    if not describes_object(schema):
        return None
    return None if run.toolset and not able.structured_output_with_tools else dict(schema)


def settings_of(run: LoopRun) -> ModelSettings:
    """Return the model settings of the current turn."""
    behavior = run.behavior
    settings = ModelSettings(
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
    base = settings.thinking_tokens
    if behavior.thinking_decay is None or not base:
        return settings
    return replace(settings, thinking_budget=decayed_budget(base, behavior.thinking_decay, run.turn))


def decayed_budget(base: int, decay: ThinkingDecay | Callable[[int, int], float] | None, turn: int) -> int:
    """Return the thinking budget of this turn (from 0) in tokens, clamped to 0 and `base`.

    A `ThinkingDecay` reduces it geometrically from `after_turn` on, down to its floor. A function receives the turn and
    the base; NaN counts as the base.
    """
    if decay is None:
        return base
    tokens = _tapered_budget(base, decay, turn) if isinstance(decay, ThinkingDecay) else float(decay(turn, base))
    if math.isnan(tokens):
        return base
    return int(max(0, min(base, tokens)))


def _tapered_budget(base: int, decay: ThinkingDecay, turn: int) -> float:
    if turn < decay.after_turn:
        return base
    return max(decay.floor, base * decay.factor ** (turn - decay.after_turn + 1))


async def call_model(run: LoopRun, request: ModelRequest, *, is_streamed: bool = True) -> ModelResponse:
    """Call the model once through all wrappers and retries; record the usage and normalize the answer.

    With `is_streamed=False`, for example for summaries, no chunks are emitted. Exceptions of the provider and of
    wrappers are raised as `ProviderError`. A call outside of turns is repeated with the next model if it fails.
    """
    while True:
        try:
            return await _call_model(run, request, is_streamed=is_streamed)
        except ProviderError as error:
            if request.purpose == "turn" or not await use_next_model(run, error):
                raise


async def _call_model(run: LoopRun, request: ModelRequest, *, is_streamed: bool) -> ModelResponse:
    respond = run.hooks.around_model_call(partial(_respond, run, is_streamed))
    with _provider_errors(run):
        answer = check_storable(await respond(request), run.provider.id)
    await _record_usage(run, answer.usage)
    await _report_edits(run, answer)
    valid = normalize_response(answer, run.call_ids, run.surroundings.new_id)
    return ModelResponse(tuple(map(run.toolset.to_canonical, valid.messages)), valid.usage)  # any canonical name


async def _report_edits(run: LoopRun, answer: ModelResponse) -> None:
    """Report what the provider cleared from the request as compactions; its usage counts the request after them."""
    after = answer.usage.prompt_tokens
    for edit in reversed(answer.context_edits):
        cleared = [
            f"{count} {noun}"
            for count, noun in (
                (edit.cleared_tool_uses, "tool uses"),
                (edit.cleared_thinking_turns, "turns of thinking"),
            )
            if count
        ]
        summary = f"the provider cleared {' and '.join(cleared) or 'a part of the request'}"
        before = after + edit.cleared_tokens
        await run.emit(
            ContextCompacted(
                loop_id=run.loop_id, tier=edit.kind, tokens_before=before, tokens_after=after, summary=summary
            )
        )
        after = before


async def _record_usage(run: LoopRun, usage: Usage) -> None:
    run.tracker.add_usage(usage)
    total = run.tracker.usage
    await run.emit(UsageReported(loop_id=run.loop_id, usage=usage, total=total))
    if run.hooks.has_handlers("usage"):
        await run.hooks.fire("usage", UsageUpdated(usage=usage, total=total, **run.hook_fields))


async def _respond(run: LoopRun, is_streamed: bool, request: ModelRequest) -> ModelResponse:
    state = _StreamState()
    if request.purpose == "turn":
        run.sent = request.messages
        run.turn_results.clear()

    async def on_chunk(chunk: Chunk) -> None:
        if is_streamed:
            state.has_chunks = True
            await _emit_chunk(run, chunk)

    async def on_retry(attempt: int, max_attempts: int, error: ProviderError, delay: float) -> None:
        await _emit_abandoned(run, state)
        await run.emit(
            Retrying(
                loop_id=run.loop_id,
                attempt=attempt,
                max_attempts=max_attempts,
                kind=error.kind,
                message=str(error),
                delay=delay,
            )
        )

    surroundings = run.surroundings
    try:
        response = await call_with_retries(
            partial(_respond_once, run, request, on_chunk),
            run.behavior.retry,
            sleep=surroundings.sleep,
            chance=surroundings.chance,
            on_retry=on_retry,
        )
        state.has_chunks = False
        return response
    finally:
        await _emit_abandoned(run, state)


async def _respond_once(run: LoopRun, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
    with _provider_errors(run):
        return await run.provider.respond(request, on_chunk)


@contextmanager
def _provider_errors(run: LoopRun) -> Iterator[None]:
    """Convert any exception of a provider or a wrapper to `ProviderError`."""
    try:
        yield
    except AgentLoopError:
        raise
    except Exception as error:
        raise ProviderError(f"{type(error).__name__}: {error_text(error)}", provider=run.provider.id) from error


async def _emit_abandoned(run: LoopRun, state: _StreamState) -> None:
    """Emit `MessageAbandoned` if chunks of the failed answer were emitted."""
    if state.has_chunks:
        state.has_chunks = False
        with anyio.CancelScope(shield=True):
            await run.emit(MessageAbandoned(loop_id=run.loop_id))


async def _emit_chunk(run: LoopRun, chunk: Chunk) -> None:
    match chunk:
        case TextChunk(text):
            await run.emit(TextDelta(loop_id=run.loop_id, text=text))
            if run.hooks.has_handlers("stream:text"):
                await run.hooks.fire("stream:text", StreamChunk(text=text, **run.hook_fields))
        case ThinkingChunk(text):
            await run.emit(ThinkingDelta(loop_id=run.loop_id, text=text))
            if run.hooks.has_handlers("stream:thinking"):
                await run.hooks.fire("stream:thinking", StreamChunk(text=text, **run.hook_fields))
        case _:
            name = run.toolset.canonical(chunk.name)
            origin = mcp_origin_of(run.toolset.get(name))
            delta = ToolInputDelta(loop_id=run.loop_id, call_id=chunk.id, name=name, delta=chunk.delta, mcp=origin)
            await run.emit(delta)
