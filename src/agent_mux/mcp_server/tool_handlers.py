"""The functions that carry out the tools. Each takes the runs of the server, a request, and a progress callback."""

from collections.abc import Awaitable, Callable

import anyio
from msgspec import UNSET

from agent_mux.agents.detection import DetectedAgent
from agent_mux.errors import AgentMuxError
from agent_mux.mcp_server.delegated_runs import DelegatedRun, DelegatedRuns
from agent_mux.mcp_server.requests import (
    AnswerRun,
    GetResult,
    ListAgents,
    ListRuns,
    SendPrompt,
    StartRun,
    StopRun,
    WatchRun,
)
from agent_mux.mcp_server.responses import (
    ActionReceipt,
    AgentInfo,
    AgentList,
    ResultResponse,
    RunInfo,
    RunList,
    RunProgress,
)
from agent_mux.mcp_server.views import outcome_of, pending_of, read_entries, read_raw_events, run_info
from agent_mux.sdk.adapter import AgentCapabilities
from agent_mux.sdk.interactions import Approve, Choice, Deny, Response, Text

Progress = Callable[[float, float, str], Awaitable[None]]
"""Notifies the client that a call still waits: elapsed seconds, maximum seconds, and the state of the run."""
MIN_RESULT_TEXT = 200  # characters of the result's text in a `watch_run` response, even if the entries fill the page
PROGRESS_INTERVAL = 5.0  # seconds between two progress notifications
_ABILITIES: dict[str, str] = {
    "can_resume": "continuing a session (continueRun)",
    "interactive_mode": "further prompts (keepOpen)",
    "subagent_dispatch": "sub-agents",
    "structured_output": "structured output",
    "image_input": "images",
    "mcp": "MCP servers",
    "skills": "skills",
    "thinking": "thinking effort",
}


async def list_agents(runs: DelegatedRuns, _request: ListAgents, _progress: Progress) -> AgentList:
    """Return the agents that may be started, and the limits."""
    found: dict[str, DetectedAgent] = {}

    async def detect(name: str) -> None:
        try:
            found[name] = await runs.mux.detector.detect(name)
        except AgentMuxError as error:  # the package of one adapter is broken
            found[name] = DetectedAgent(name, name, False, problem=str(error))

    async with anyio.create_task_group() as tasks:
        for name in runs.allowed_agents():
            tasks.start_soon(detect, name)
    return AgentList(agents=[_agent_info(runs, found[name]) for name in sorted(found)], limits=runs.limits_info())


def _agent_info(runs: DelegatedRuns, found: DetectedAgent) -> AgentInfo:
    adapter = runs.mux.adapters.get(found.agent) if found.agent in runs.mux.adapters else None
    if adapter is None:
        return AgentInfo(name=found.agent, title=found.display_name, installed=False, problem=found.problem)
    modes = [mode for mode in runs.limits.modes if mode in adapter.capabilities.approval_modes]
    unusable = None if modes else f"supports no approval mode that this server allows ({', '.join(runs.limits.modes)})"
    return AgentInfo(
        name=found.agent,
        title=found.display_name,
        installed=found.installed,
        version=found.version,
        can=_abilities(adapter.capabilities),
        approval_modes=list(modes),
        default_model=adapter.default_model,
        problem=found.problem or unusable,
    )


def _abilities(capabilities: AgentCapabilities) -> list[str]:
    return [ability for name, ability in _ABILITIES.items() if getattr(capabilities, name)]


async def start_run(runs: DelegatedRuns, request: StartRun, _progress: Progress) -> RunInfo:
    """Start a run and return before its agent has been spawned; `watch_run` reports how that went."""
    return run_info(runs.start(request))


async def watch_run(runs: DelegatedRuns, request: WatchRun, progress: Progress) -> RunProgress:
    """Wait until the requested condition holds or the time is over, then return the new entries or events."""
    run = runs.get(request.run_id)
    after = run.cursor if request.after is UNSET else min(request.after, run.event_count)
    await _wait(run, request, after, progress)
    read = read_raw_events if request.view == "raw" else read_entries
    page = await read(run, after, request.max_chars)
    is_done = run.is_over and not page.more
    run.cursor = page.next
    return RunProgress(
        run_id=run.handle.run_id,
        state=run.handle.state,
        next=page.next,
        more=page.more,
        entries=page.entries,
        events=page.events,
        idle=run.is_idle,
        pending=pending_of(run.handle),
        result=outcome_of(await run.handle, 0, max(page.chars_left, MIN_RESULT_TEXT)) if is_done else None,
    )


async def _wait(run: DelegatedRun, request: WatchRun, after: int, progress: Progress) -> None:
    """Wait until the condition of the request holds or its time is over, with progress notifications meanwhile."""
    start, limit = anyio.current_time(), request.wait_ms / 1000
    while not _is_satisfied(run, request, after):
        elapsed = anyio.current_time() - start
        if elapsed >= limit:
            return
        until_progress = PROGRESS_INTERVAL - elapsed % PROGRESS_INTERVAL
        await run.wait_for_change(min(until_progress, limit - elapsed))
        if anyio.current_time() - start >= elapsed + until_progress:
            await progress(anyio.current_time() - start, limit, f"{run.handle.agent} is {run.handle.state}")


def _is_satisfied(run: DelegatedRun, request: WatchRun, after: int) -> bool:
    if request.until == "now" or run.is_waiting:
        return True
    return request.until == "news" and (run.event_count if request.view == "raw" else run.entries_end) > after


async def answer(runs: DelegatedRuns, request: AnswerRun, _progress: Progress) -> ActionReceipt:
    """Answer a pending approval or question of a run."""
    run = runs.get(request.run_id)
    delivery = await run.handle.interaction.respond(_interaction_id(run, request), _response(request))
    return _receipt(run, delivery)


def _interaction_id(run: DelegatedRun, request: AnswerRun) -> str:
    if request.interaction_id is not UNSET:
        return request.interaction_id
    pending = run.handle.interaction.pending
    if not pending:
        raise AgentMuxError("NO_PENDING_INTERACTION", f"run {run.handle.run_id} does not wait for an answer")
    if len(pending) > 1:
        raise AgentMuxError("VALIDATION_ERROR", f"{len(pending)} interactions are pending; choose one by interactionId")
    return pending[0].id


def _response(request: AnswerRun) -> Response:
    text, option = request.text, request.option
    match request.decision:
        case "approve":
            return Approve()
        case "deny":
            return Deny(None if text is UNSET else text)
        case "text" if text is not UNSET:
            return Text(text)
        case "option" if option is not UNSET:
            return Choice(option)
    raise AgentMuxError("VALIDATION_ERROR", f"decision {request.decision!r} requires the field {request.decision!r}")


async def send_prompt(runs: DelegatedRuns, request: SendPrompt, _progress: Progress) -> ActionReceipt:
    """Send a further prompt to an active run."""
    run = runs.get(request.run_id)
    return _receipt(run, await run.handle.send(request.prompt))


async def stop_run(runs: DelegatedRuns, request: StopRun, _progress: Progress) -> ActionReceipt:
    """Abort a run, or close it so that it ends after its prompts. The run ends even if this call is cancelled."""
    run = runs.get(request.run_id)
    if run.is_over:
        return _receipt(run, "unneeded")
    return _receipt(run, await (run.handle.abort() if request.when == "now" else run.handle.close()))


def _receipt(run: DelegatedRun, delivery: str) -> ActionReceipt:
    handle = run.handle
    return ActionReceipt(run_id=handle.run_id, delivery=delivery, state=handle.state, pending=pending_of(handle))


async def list_runs(runs: DelegatedRuns, _request: ListRuns, _progress: Progress) -> RunList:
    """Return all runs of this server, and the limits."""
    return RunList(runs=[run_info(run) for run in runs.all], limits=runs.limits_info())


async def get_result(runs: DelegatedRuns, request: GetResult, _progress: Progress) -> ResultResponse:
    """Return the changed files of a run and, once it has ended, its result."""
    run = runs.get(request.run_id)
    return ResultResponse(
        run_id=run.handle.run_id,
        agent=run.handle.agent,
        state=run.handle.state,
        over=run.is_over,
        files_changed=list(run.files),
        result=outcome_of(await run.handle, request.from_char, request.max_chars) if run.is_over else None,
    )
