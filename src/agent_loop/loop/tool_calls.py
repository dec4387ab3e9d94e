"""Processing of one tool call, from the gate to the result.

gate -> (blocked | substituted | unknown) -> validation -> before -> execute -> (error) -> transform -> after
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
from msgspec.structs import replace

from agent_loop.errors import InvalidArgumentsError, ToolError, error_text
from agent_loop.events import HookFailed, ToolCalled, ToolCallEnd, ToolCallStart, ToolProgress, ToolResulted, ToolUpdate
from agent_loop.hooks.contexts import (
    McpToolGate,
    ToolAfter,
    ToolBefore,
    ToolFailed,
    ToolGate,
    ToolTransform,
    ToolUnknown,
    ToolUpdating,
    ValidationCoerced,
    ValidationRejected,
)
from agent_loop.loop.run import LoopRun, output_limit
from agent_loop.messages import Text, ToolCall, ToolMessage
from agent_loop.tools.effects import OutputStream
from agent_loop.tools.results import failure, output_bytes, result_or_failure, valid_result, without_images
from agent_loop.tools.threads import call_in_thread
from agent_loop.tools.tool import (
    DoneSignal,
    Output,
    RawTool,
    TaskComplete,
    Tool,
    ToolContext,
    ToolResult,
    foreground_command_of,
    is_read_only,
    label_of,
    mcp_origin_of,
)
from agent_loop.tools.validation import Validated, validate_arguments

GATE_FAILED = "a tool gate failed"
SKIPPED_BY_HOOK = "Skipped: a hook kept this tool from running."
MAX_NAMES = 100
"""Names of tools in the result of a call of an unknown one."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The result of a processed call."""

    message: ToolMessage
    output_bytes: int = 0
    done: DoneSignal | None = None


async def emit_call_start(run: LoopRun, call: ToolCall) -> None:
    """Emit the start of a tool call and the call itself."""
    tool = run.toolset.get(call.name)
    command = None if tool is None else foreground_command_of(tool, call.arguments)
    with anyio.CancelScope(shield=True):  # both events or none: later events rely on it
        await run.emit(ToolCallStart(loop_id=run.loop_id, call_id=call.id, name=call.name))
        await run.emit(ToolCalled(loop_id=run.loop_id, call=call, shell_command=command, mcp=mcp_origin_of(tool)))


async def emit_call_result(run: LoopRun, call: ToolCall, result: ToolResult, duration_ms: int = 0) -> ToolMessage:
    """Emit the result and the end of a tool call; return the message for the history."""
    message = ToolMessage(
        tool_call_id=call.id,
        name=call.name,
        content=result.content,
        is_error=result.is_error,
        details=result.details,
        timestamp=run.surroundings.now_ms(),
    )
    result_event = ToolResulted(loop_id=run.loop_id, message=message, effects=result.effects, duration_ms=duration_ms)
    end = ToolCallEnd(
        loop_id=run.loop_id,
        call_id=call.id,
        name=call.name,
        status="error" if result.is_error else "completed",
        child_loop_id=result.child_loop_id,
        child_session_id=result.child_session_id,
    )
    with anyio.CancelScope(shield=True):
        await run.emit(result_event)
        await run.emit(end)
    run.turn_results[call.id] = message
    return message


class ToolCallExecution:
    """The processing of one call. `counts`: calls of this run by tool, before this call and concurrent ones."""

    def __init__(self, run: LoopRun, call: ToolCall, counts: Mapping[str, int], *, is_cut: bool = False) -> None:
        """`is_cut`: the output limit cut the arguments off, so that the call is answered without being executed."""
        self.run = run
        self.call = call
        self._is_cut = is_cut
        self.tool: Tool | None = run.toolset.get(call.name)
        self.done: DoneSignal | None = None
        self._started = run.surroundings.monotonic()
        self._hook_fields: dict[str, Any] = {
            **run.hook_fields,
            "call_id": call.id,
            "name": call.name,
            "label": run.toolset.wire(call.name) if self.tool is None else label_of(self.tool),
            "wire_name": run.toolset.wire(call.name),
            "run_tool_counts": MappingProxyType(counts),
        }

    async def execute(self) -> ToolOutcome:
        """Process the call. Exceptions of tools and hooks become results; only cancellation is raised."""
        await emit_call_start(self.run, self.call)
        if self._is_cut:
            return await self._conclude(failure(_cut_text(self.run, self.call.name)), 0)
        gate = await self._pass_gates(self.call.arguments)
        if gate.block:
            return await self._conclude(blocked(gate), 0)
        self.run.tool_counts[self.call.name] = self.run.tool_counts.get(self.call.name, 0) + 1
        if gate.result is not None:
            return await self._finish(result_or_failure(gate.result))
        if self.tool is None:
            return await self._finish(await self._unknown_tool_result())
        return await self._validate_and_execute(self.tool)

    async def _pass_gates(self, arguments: Mapping[str, Any]) -> ToolGate:
        gate = ToolGate(arguments=copy_arguments(arguments), tool=self.tool, **self._hook_fields)
        if not await self.run.hooks.fire("tool:gate", gate) and not gate.block:
            gate.block, gate.reason = True, GATE_FAILED  # the verdict of the failed gate is unknown
        return gate

    async def _unknown_tool_result(self) -> ToolResult:
        context = ToolUnknown(arguments=copy_arguments(self.call.arguments), **self._hook_fields)
        await self.run.hooks.fire("tool:unknown", context)
        if context.result is not None:
            return result_or_failure(context.result)
        message = _unknown_tool_text(self.run, self.call.name)
        if context.suppress_error:
            return failure(f"Error: {message}")
        return await self._error_result(ToolError(message))

    async def _validate_and_execute(self, tool: Tool) -> ToolOutcome:
        """Validate the arguments and run the tool; only a `RawTool` gets arguments other than a JSON object."""
        if self.call.is_unparsable and isinstance(tool, RawTool):
            return await self._execute(tool, dict(self.call.arguments), ())
        try:
            # A copy, so that the tool cannot change the model's arguments in the history.
            validated = validate_call(tool, replace(self.call, arguments=copy_arguments(self.call.arguments)))
        except InvalidArgumentsError as error:
            return await self._conclude(await self._reject(self.call, error), 0)
        if validated.coercions and self.run.hooks.has_handlers("validation:coerce"):
            coerced = ValidationCoerced(
                arguments=copy_arguments(validated.arguments), coercions=validated.coercions, **self._hook_fields
            )
            await self.run.hooks.fire("validation:coerce", coerced)
        return await self._execute(tool, validated.arguments, validated.coercions)

    async def _reject(self, call: ToolCall, error: InvalidArgumentsError) -> ToolResult:
        context = ValidationRejected(arguments=copy_arguments(call.arguments), problem=str(error), **self._hook_fields)
        await self.run.hooks.fire("validation:reject", context)
        return failure(f"Validation error: {error}")

    async def _execute(self, tool: Tool, arguments: dict[str, Any], coercions: tuple[str, ...]) -> ToolOutcome:
        context = self._context()
        if self.run.hooks.has_handlers("tool:before"):
            before = ToolBefore(
                arguments=copy_arguments(arguments),
                coercions=coercions,
                prior_content=await self._read_prior_content(tool, arguments, context),
                **self._hook_fields,
            )
            await self.run.hooks.fire("tool:before", before)
            if before.skip:
                return await self._conclude(failure(SKIPPED_BY_HOOK), 0)

        approved = copy_arguments(arguments)  # `call` is in the hands of wrappers

        async def inner(passed: ToolCall) -> ToolResult:
            if passed.arguments == approved and passed.raw_arguments == self.call.raw_arguments:
                return await self._run_tool(tool, passed, context)
            return await self._run_changed(tool, passed, context)

        call = ToolCall(self.call.id, self.call.name, arguments, self.call.raw_arguments)
        try:
            result = valid_result(await self.run.hooks.around_tool_call(inner)(call))
        except Exception as error:  # noqa: BLE001  # foreign tool code; the model gets the error
            result = await self._error_result(error)
        return await self._finish(result)

    async def _run_changed(self, tool: Tool, call: ToolCall, context: ToolContext) -> ToolResult:
        """Validate and gate arguments that a wrapper changed, as those of the model; then run the tool."""
        if not (call.is_unparsable and isinstance(tool, RawTool)):
            try:
                call = replace(call, arguments=validate_call(tool, call).arguments)
            except InvalidArgumentsError as error:
                return await self._reject(call, error)
        gate = await self._pass_gates(call.arguments)
        if gate.block:
            return blocked(gate)
        if gate.result is not None:
            return result_or_failure(gate.result)
        return await self._run_tool(tool, call, context)

    async def _run_tool(self, tool: Tool, call: ToolCall, context: ToolContext) -> ToolResult:
        try:
            if call.is_unparsable and isinstance(tool, RawTool):
                output: Output = await tool.execute_raw(self.call.raw_arguments, context)
            else:
                output = await tool.execute(call.arguments, context)
        except TaskComplete as complete:
            output = complete.signal
        except SystemExit as error:
            raise ToolError(f"the tool tried to exit the process (code {error.code}), which is not allowed") from error
        except anyio.get_cancelled_exc_class() as error:
            if await is_cancelled():
                raise
            raise ToolError("the tool awaited a task that was cancelled") from error
        if isinstance(output, DoneSignal):
            self.done = output
        return valid_result(output)

    async def _read_prior_content(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> str | None:
        """Return the content of a file before the tool overwrites it, if the tool can read it.

        The tool reads the file in a thread, because the call blocks.
        """
        read = getattr(tool, "prior_content", None)
        try:
            return None if read is None else await call_in_thread(read, copy_arguments(arguments), context)
        except Exception as error:  # noqa: BLE001  # foreign tool code
            problem = f"{type(error).__name__}: {error_text(error)}"
            await self.run.emit(
                HookFailed(loop_id=self.run.loop_id, hook=f"prior_content of {tool.name}", error=problem)
            )
            return None

    async def _error_result(self, error: Exception) -> ToolResult:
        context = ToolFailed(error=error, **self._hook_fields)
        await self.run.hooks.fire("tool:error", context)
        if context.result is not None:
            return result_or_failure(context.result)
        return failure(f"Error: {error_text(error) or type(error).__name__}")

    async def _finish(self, result: ToolResult) -> ToolOutcome:
        if self.run.hooks.has_handlers("tool:transform"):
            context = ToolTransform(result=result, output_bytes=output_bytes(result.content), **self._hook_fields)
            await self.run.hooks.fire("tool:transform", context)
            result = result if context.result is result else result_or_failure(context.result)
        result = await self._limit_result(result)
        size = output_bytes(result.content)
        duration_ms = round((self.run.surroundings.monotonic() - self._started) * 1000)
        if self.run.hooks.has_handlers("tool:after"):
            after = ToolAfter(result=result, output_bytes=size, duration_ms=duration_ms, **self._hook_fields)
            await self.run.hooks.fire("tool:after", after)
        return await self._conclude(result, size, duration_ms)

    async def _limit_result(self, result: ToolResult) -> ToolResult:
        if self.run.persistence is not None:
            result = await self.run.persistence.persist(self.call.id, self.call.name, result)
            await self.run.emit_problems()
        return result if self.run.provider.capabilities.vision else without_images(result)

    async def _conclude(self, result: ToolResult, size: int, duration_ms: int = 0) -> ToolOutcome:
        may_write = self.tool is not None and not is_read_only(self.tool)
        note = self.run.repetitions.note(self.call.name, self.call.arguments, result, may_write=may_write)
        if note is not None:
            result = replace(result, content=(*result.content, Text(note)))
        return ToolOutcome(await emit_call_result(self.run, self.call, result, duration_ms), size, self.done)

    def _context(self) -> ToolContext:
        run = self.run
        optional: dict[str, Any] = {} if run.ask is None else {"ask": run.ask}
        return ToolContext(
            call_id=self.call.id,
            tool_name=self.call.name,
            state=run.state,
            deps=run.deps,
            workspace=run.workspace,
            behavior=run.behavior,
            update=self._update,
            progress=self._progress,
            seen=run.seen,
            parent=run,
            is_cancelled=lambda: run.abort_reason is not None,
            **optional,
        )

    async def _update(self, text: str, stream: OutputStream = "stdout") -> None:
        hooks, call = self.run.hooks, self.call
        update = ToolUpdate(loop_id=self.run.loop_id, call_id=call.id, name=call.name, text=text, stream=stream)
        if not (hooks.has_handlers("tool:update") or hooks.has_handlers("tool:updated")):
            await self.run.emit(update)
            return
        context = ToolUpdating(text=text, stream=stream, **self._hook_fields)
        await hooks.fire("tool:update", context)
        if not context.suppress:
            await self.run.emit(update)
            await hooks.fire("tool:updated", context)

    async def _progress(self, text: str) -> None:
        progress = ToolProgress(loop_id=self.run.loop_id, call_id=self.call.id, name=self.call.name, text=text)
        await self.run.emit(progress)


def blocked(gate: ToolGate | McpToolGate) -> ToolResult:
    """Return the result of a call that a gate blocked."""
    return failure(f"Blocked: {gate.reason or 'a policy does not allow this call'}")


def _unknown_tool_text(run: LoopRun, name: str) -> str:
    """Return the result of a call of a tool that does not exist, for the model: with the names of those that do."""
    names = run.toolset.offered_names()
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"Unknown tool '{name}'" + (f". Available tools: {', '.join(names[:MAX_NAMES])}{more}" if names else "")


def _cut_text(run: LoopRun, tool: str) -> str:
    return (
        f"Not executed: the answer was cut at its limit of {output_limit(run)} before the arguments of {tool} were "
        "complete. Send less at once, for example write a long file in several calls."
    )


async def is_cancelled() -> bool:
    """Return whether the current task is cancelled.

    On asyncio a tool can also raise the cancellation of another task that it awaited.
    """
    try:
        await anyio.lowlevel.checkpoint_if_cancelled()
    except anyio.get_cancelled_exc_class():
        return True
    return anyio.get_cancelled_exc_class() is not asyncio.CancelledError or _is_cancelled_by_asyncio()


def _is_cancelled_by_asyncio() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def copy_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the arguments, so that tools and hooks cannot change those of the history."""
    copied: dict[str, Any] = msgspec.to_builtins(arguments, enc_hook=str)
    return copied


def validate_call(tool: Tool, call: ToolCall) -> Validated:
    """Return the validated and coerced arguments of the call. Raises `InvalidArgumentsError`."""
    if call.is_unparsable:
        shown = call.raw_arguments[:200]
        raise InvalidArgumentsError(
            f"the arguments of {call.name} are not a JSON object: {shown!r}; send them again as one JSON object"
        )
    return validate_arguments(tool.parameters, call.arguments)
