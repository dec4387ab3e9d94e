"""Deliberate mistakes: mypy and pyright must report every marked line, and no other. Nothing here is executed."""

from collections.abc import Mapping
from typing import Any

from agent_mux import AgentMux, Approve, Block, BlockingAgentMux, BlockingRemoteMux, RemoteMux, RunHandle, RunOptions
from agent_mux.events import AgentEvent, AgentEventType, BaseEvent, EventName, TextDeltaEvent, ToolErrorEvent
from agent_mux.sdk.hooks import HookCall, HookDecision


def on_text(event: TextDeltaEvent) -> None: ...


def on_error(event: ToolErrorEvent) -> None: ...


def on_any(event: AgentEvent) -> None: ...


def on_base(event: BaseEvent) -> None: ...


async def options(mux: AgentMux, remote: RemoteMux, blocking: BlockingAgentMux, far: BlockingRemoteMux) -> None:
    mux.run(agent="claude", prompt="x", timeout=5, tags=["a"])
    mux.run(agent="claude", promt="x")  # mistake: name
    mux.run(agent="claude", prompt="x", timeout=["5"])  # mistake: type
    mux.run(agent="claude", prompt="x", approval_mode="always")  # mistake: value
    mux.run(agent="claude", prompt="x", thinking_effort="huge")  # mistake: value
    mux.run(agent="claude", prompt="x", mcp_servers=[{"name": "x", "command": "y"}])
    mux.run(agent="claude", prompt="x", mcp_servers=[{"name": "x", "comand": "y"}])  # mistake: key
    mux.run(agent="claude", prompt="x", mcp_servers=[{"command": "y"}])  # mistake: required key
    mux.run(agent="claude", prompt="x", retry_policy={"max_attempts": "3"})  # mistake: type in a mapping
    mux.run(agent="claude", prompt="x", fail_on=["denyed"])  # mistake: value in a list
    await mux.start(agent="claude", cwdd="/")  # mistake: name
    mux.plan(agent="claude", max_tokens=1.5)  # mistake: type
    mux.resolve_options(agent=5)  # mistake: type
    remote.run(agent="claude", promt="x")  # mistake: name
    await remote.start(agent="claude", stream="sometimes")  # mistake: value
    await remote.attach("id", prompt="x")  # mistake: option of runs
    blocking.run(agent="claude", promt="x")  # mistake: name
    blocking.resolve_options(interactive="yes")  # mistake: type
    far.run(agent="claude", promt="x")  # mistake: name
    RunOptions(agent="claude", promt="x")  # mistake: name


def constructors() -> None:
    AgentMux(default_agent="claude", timeout=5, journal=False)
    AgentMux(default_agnt="claude")  # mistake: name
    AgentMux(tags=["x"])  # mistake: no default
    RemoteMux("http://localhost", journal=False)  # mistake: no default of a remote client
    BlockingAgentMux(max_concurent_runs=2)  # mistake: name
    BlockingAgentMux(backend="curio")  # mistake: value
    BlockingRemoteMux("http://localhost", tokn="x")  # mistake: name


def handlers(run: RunHandle) -> None:
    run.on(TextDeltaEvent, on_text).once("text_delta", on_text).off("*", on_text)
    run.on("tool_error", on_error).on(AgentEventType.TOOL_ERROR, on_error).on("tool_error", print)
    run.on("tool_error", lambda event: event.error).once("*", on_any).on("text_delta", on_any).on("*", on_base)
    run.on("tool_error", on_text)  # mistake: another event
    run.once("text_delta", on_error)  # mistake: another event
    run.on(AgentEventType.TOOL_ERROR, on_text)  # mistake: another event
    run.on("*", on_text)  # mistake: not every event
    run.on("tool_error", lambda event: event.delta)  # mistake: no field of the event
    run.on("tool_error", True)  # mistake: no function
    run.on(TextDeltaEvent, on_error)  # mistake: another event
    run.on("text_dela", on_text)  # mistake: name
    run.once("text-delta", on_text)  # mistake: name
    run.off("texts", on_text)  # mistake: name
    run.on(TextDeltaEvent, lambda event: event.delta)
    run.on(TextDeltaEvent, lambda event: event.text)  # mistake: no field of the event
    run.on(RunOptions, print)  # mistake: no event

    @run.on("tool_error")
    def right(event: ToolErrorEvent) -> None: ...

    @run.on("*")
    def every(event: BaseEvent) -> None: ...

    @run.on("tool_error")  # mistake: another event
    def wrong(event: TextDeltaEvent) -> None: ...

    @run.on(ToolErrorEvent)  # mistake: another event
    def decorated(event: TextDeltaEvent) -> None: ...


def variables(run: RunHandle, name: EventName) -> None:
    run.on(name, on_any)
    run.on(name, on_text)  # mistake: not every event


def guard(call: HookCall) -> Block | None:
    return Block("no") if call.command else None


async def decide(_: HookCall) -> HookDecision:
    return HookDecision()


async def change(call: HookCall) -> Mapping[str, Any] | None:
    return call.tool_input


def is_allowed(call: HookCall) -> bool:
    return call.command is None


async def may(call: HookCall) -> bool:
    return call.command is None


def hooks(mux: AgentMux) -> None:
    seen: list[HookCall] = []
    mux.run(agent="claude", hooks={"pre_tool_use": guard, "stop": print, "post_tool_use": seen.append})
    mux.run(agent="claude", hooks={"pre_tool_use": decide, "permission_request": change})
    mux.run(agent="claude", hooks={"pre_tool_use": lambda call: Block("no") if call.command else None})
    mux.run(agent="claude", hooks={"pre_tool_use": is_allowed})  # mistake: returns a bool
    mux.run(agent="claude", hooks={"pre_tool_use": may})  # mistake: returns a bool
    mux.run(agent="claude", hooks={"pre_tool_use": lambda _: False})  # mistake: returns a bool
    mux.run(agent="claude", hooks={"pre_tool_use": lambda _: "deny"})  # mistake: returns a word
    mux.run(agent="claude", hooks={"pre_tool_use": lambda _: Approve()})  # mistake: returns an answer
    mux.run(agent="claude", on_approval_request=lambda _: "yes")  # mistake: returns a word


async def results(run: RunHandle) -> None:
    result = await run
    result.exit_code + 1  # mistake: may be None
    result.exitReason  # mistake: name
