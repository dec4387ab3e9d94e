"""Deliberate mistakes: mypy and pyright must report every marked line, and no other. Nothing here is executed."""

from agent_mux import AgentMux, BlockingAgentMux, BlockingRemoteMux, RemoteMux, RunHandle, RunOptions
from agent_mux.events import TextDeltaEvent, ToolErrorEvent


def on_text(event: TextDeltaEvent) -> None: ...


def on_error(event: ToolErrorEvent) -> None: ...


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
    run.on(TextDeltaEvent, on_error)  # mistake: another event
    run.on("text_dela", on_text)  # mistake: name
    run.once("text-delta", on_text)  # mistake: name
    run.off("texts", on_text)  # mistake: name
    run.on(TextDeltaEvent, lambda event: event.delta)
    run.on(TextDeltaEvent, lambda event: event.text)  # mistake: no field of the event
    run.on(RunOptions, print)  # mistake: no event

    @run.on(ToolErrorEvent)  # mistake: another event
    def decorated(event: TextDeltaEvent) -> None: ...


async def results(run: RunHandle) -> None:
    result = await run
    result.exit_code + 1  # mistake: may be None
    result.exitReason  # mistake: name
