"""What each tool does."""

from collections.abc import Awaitable, Callable

import anyio
from msgspec import UNSET

from agent_mux.agents.detection import DetectedAgent
from agent_mux.errors import AgentMuxError
from agent_mux.mcp_server.answers import AgentInfo, Agents, Answered, Result, RunInfo, Runs, Watched
from agent_mux.mcp_server.delegations import Delegation, Delegations
from agent_mux.mcp_server.requests import (
    Answer,
    GetResult,
    ListAgents,
    ListRuns,
    SendPrompt,
    StartRun,
    StopRun,
    WatchRun,
)
from agent_mux.mcp_server.views import entries_of, outcome_of, pending_of, raw_events_of, run_info
from agent_mux.sdk.adapter import AgentCapabilities
from agent_mux.sdk.interactions import Approve, Choice, Deny, Response, Text

Progress = Callable[[float, float, str], Awaitable[None]]
"""Tells the client that a call goes on: seconds so far, seconds at most, and how it stands."""
LEAST_TEXT = 200  # characters of the result's text that watch_run shows in any case; the entries have it already
HEARTBEAT = 5.0  # seconds between two such notes
_PHRASES: dict[str, str] = {
    "can_resume": "continuing a session",
    "interactive_mode": "further prompts (keepOpen)",
    "subagent_dispatch": "sub-agents of its own",
    "structured_output": "structured answers",
    "image_input": "images",
    "mcp": "MCP servers",
    "skills": "skills",
    "thinking": "thinking effort",
}


async def list_agents(them: Delegations, _asked: ListAgents, _progress: Progress) -> Agents:
    """Who can be asked, and within which limits."""
    found: dict[str, DetectedAgent] = {}

    async def look(name: str) -> None:
        try:
            found[name] = await them.mux.detector.detect(name)
        except AgentMuxError as error:  # the package of one adapter is broken
            found[name] = DetectedAgent(name, name, False, problem=str(error))

    async with anyio.create_task_group() as tasks:
        for name in them.agents():
            tasks.start_soon(look, name)
    return Agents(agents=[_agent(them, found[name]) for name in sorted(found)], limits=them.left())


def _agent(them: Delegations, found: DetectedAgent) -> AgentInfo:
    adapter = them.mux.adapters.get(found.agent) if found.agent in them.mux.adapters else None
    if adapter is None:
        return AgentInfo(name=found.agent, title=found.display_name, installed=False, problem=found.problem)
    modes = [mode for mode in them.limits.modes if mode in adapter.capabilities.approval_modes]
    unfit = None if modes else f"it knows no approval mode that is allowed here ({', '.join(them.limits.modes)})"
    return AgentInfo(
        name=found.agent,
        title=found.display_name,
        installed=found.installed,
        version=found.version,
        can=_abilities(adapter.capabilities),
        approval_modes=list(modes),
        default_model=adapter.default_model,
        problem=found.problem or unfit,
    )


def _abilities(capabilities: AgentCapabilities) -> list[str]:
    return [phrase for name, phrase in _PHRASES.items() if getattr(capabilities, name)]


async def start_run(them: Delegations, asked: StartRun, _progress: Progress) -> RunInfo:
    """Begin. The agent is started after the answer: watch_run shows what becomes of it."""
    return run_info(them.start(asked))


async def watch_run(them: Delegations, asked: WatchRun, progress: Progress) -> Watched:
    """Wait for what was asked for, then show what is new."""
    one = them.get(asked.run_id)
    after = one.cursor if asked.after is UNSET else min(asked.after, one.count)
    await _wait(one, asked, after, progress)
    show = raw_events_of if asked.view == "raw" else entries_of
    page = await show(one, after, asked.max_chars)
    is_done = one.is_over and not page.more
    one.cursor = page.next
    return Watched(
        run_id=one.run.run_id,
        state=one.run.state,
        next=page.next,
        more=page.more,
        entries=page.entries,
        events=page.events,
        idle=one.is_idle,
        pending=pending_of(one.run),
        result=outcome_of(await one.run, 0, max(page.room, LEAST_TEXT)) if is_done else None,
    )


async def _wait(one: Delegation, asked: WatchRun, after: int, progress: Progress) -> None:
    began, most = anyio.current_time(), asked.wait_ms / 1000
    while not _is_enough(one, asked, after):
        passed = anyio.current_time() - began
        if passed >= most:
            return
        beat = HEARTBEAT - passed % HEARTBEAT
        await one.until_news(min(beat, most - passed))
        if anyio.current_time() - began >= passed + beat:
            await progress(anyio.current_time() - began, most, f"{one.run.agent} is {one.run.state}")


def _is_enough(one: Delegation, asked: WatchRun, after: int) -> bool:
    if asked.until == "now" or one.is_waiting:
        return True
    return asked.until == "news" and (one.count if asked.view == "raw" else one.told) > after


async def answer(them: Delegations, asked: Answer, _progress: Progress) -> Answered:
    """Settle what a run waits for."""
    one = them.get(asked.run_id)
    delivery = await one.run.interaction.respond(_which(one, asked), _response(asked))
    return _answered(one, delivery)


def _which(one: Delegation, asked: Answer) -> str:
    if asked.interaction_id is not UNSET:
        return asked.interaction_id
    pending = one.run.interaction.pending
    if not pending:
        raise AgentMuxError("NO_PENDING_INTERACTION", f"run {one.run.run_id} waits for no answer")
    if len(pending) > 1:
        raise AgentMuxError("VALIDATION_ERROR", f"{len(pending)} are pending; say which by interactionId")
    return pending[0].id


def _response(asked: Answer) -> Response:
    text, option = asked.text, asked.option
    match asked.decision:
        case "approve":
            return Approve()
        case "deny":
            return Deny(None if text is UNSET else text)
        case "text" if text is not UNSET:
            return Text(text)
        case "option" if option is not UNSET:
            return Choice(option)
    raise AgentMuxError("VALIDATION_ERROR", f"decision {asked.decision!r} wants the field {asked.decision!r}, too")


async def send_prompt(them: Delegations, asked: SendPrompt, _progress: Progress) -> Answered:
    """More to do."""
    one = them.get(asked.run_id)
    return _answered(one, await one.run.send(asked.prompt))


async def stop_run(them: Delegations, asked: StopRun, _progress: Progress) -> Answered:
    """The end, now or soon. It goes on when the call is cancelled."""
    one = them.get(asked.run_id)
    if one.is_over:
        return _answered(one, "unneeded")
    return _answered(one, await (one.run.abort() if asked.when == "now" else one.run.close()))


def _answered(one: Delegation, delivery: str) -> Answered:
    return Answered(run_id=one.run.run_id, delivery=delivery, state=one.run.state, pending=pending_of(one.run))


async def list_runs(them: Delegations, _asked: ListRuns, _progress: Progress) -> Runs:
    """All runs of this server."""
    return Runs(runs=[run_info(one) for one in them.all], limits=them.left())


async def get_result(them: Delegations, asked: GetResult, _progress: Progress) -> Result:
    """How a run ended, if it has."""
    one = them.get(asked.run_id)
    return Result(
        run_id=one.run.run_id,
        agent=one.run.agent,
        state=one.run.state,
        over=one.is_over,
        files_changed=list(one.files),
        result=outcome_of(await one.run, asked.from_char, asked.max_chars) if one.is_over else None,
    )
