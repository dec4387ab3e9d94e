"""A session of the editor: prompts run one after the other, in a run that stays open if the agent supports it.

The next prompt starts another run, which resumes the agent's session, if the agent accepts one prompt per run, if it
has exited, or if a choice cannot be applied to the running agent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import anyio.abc
from acp.schema import ClientCapabilities, PromptResponse

from agent_mux.acp_server.choices import PLAN, SessionChoices
from agent_mux.acp_server.commands import SessionCommands
from agent_mux.acp_server.interactions import EditorConnection, InteractionResponder
from agent_mux.acp_server.prompts import EditorPrompt
from agent_mux.acp_server.session_run import SessionRun
from agent_mux.acp_server.stored_sessions import session_tag
from agent_mux.acp_server.turns import EditorTurn
from agent_mux.acp_server.updates import RunUpdates
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.events import CostRecord
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.options import RUN_ID

_ASKING = frozenset({"prompt", PLAN})
"""The approval modes in which requests are shown in the editor."""
CANCEL_TIMEOUT = 10.0  # seconds for the agent to stop; then its run is aborted
LEAVE_TIMEOUT = 5.0  # seconds for the agent to exit before another run resumes its session


@dataclass(kw_only=True)
class EditorSession:
    """One session of the editor."""

    session_id: str
    mux: AgentMux
    adapter: Adapter
    editor: EditorConnection
    editor_capabilities: ClientCapabilities | None
    tasks: anyio.abc.TaskGroup
    """The task group that follows runs."""
    fields: Mapping[str, Any]
    """Options of all its runs, including `cwd` and `mcp_servers`."""
    choices: SessionChoices
    context_window_of: Callable[[str | None], int | None]
    """Returns the context window of a model in tokens."""
    commands: SessionCommands
    """What the user can call by `/name`."""
    native_id: str | None = None
    """The agent's session id; None before the session exists."""
    forks: str | None = None
    """The agent's id of the session to fork, if any."""
    spent: float | None = 0.0
    """The cost of earlier runs in US dollars; None if unknown."""
    _run: SessionRun | None = None
    _turn: EditorTurn | None = None
    _runs: int = 0
    _prompt_lock: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def cwd(self) -> str:
        """The working directory of the agent."""
        return str(self.fields["cwd"])

    async def prompt(self, prompt: EditorPrompt) -> PromptResponse:
        """Run a prompt. Raise `RequestError` for a failed turn, and the error that prevents a run from starting."""
        async with self._prompt_lock:
            turn = self._turn = EditorTurn()
            try:
                await self._dispatch(prompt, turn)
                await turn.over.wait()
                if turn.is_unread and not turn.is_cancelled:  # the agent was exiting when the prompt arrived
                    turn = self._turn = EditorTurn()
                    await self._start(prompt, turn)
                    await self._mark_sent(turn)
                    await turn.over.wait()
            finally:
                self._turn = None
        return turn.response()

    async def cancel(self) -> None:
        """Interrupt the agent. The prompt is answered when the agent has stopped. Another call changes nothing."""
        turn = self._turn
        if turn is not None and not turn.is_cancelled:
            turn.is_cancelled = True
            if turn.is_sent:
                await self._interrupt(turn)

    async def close(self) -> None:
        """End the run of this session."""
        await self.cancel()
        run, self._run = self._run, None
        if run is not None:
            await _end_run(run)

    async def send_commands(self) -> None:
        """List the commands in the editor, if there are any."""
        update = self.commands.update()
        if update is not None:
            try:
                await self.send_update(update)
            except OSError:  # the editor is disconnected
                return

    async def send_update(self, update: Any) -> None:
        """Send an update to the editor."""
        await self.editor.session_update(session_id=self.session_id, update=update)

    # -- runs

    async def _dispatch(self, prompt: EditorPrompt, turn: EditorTurn) -> None:
        run = self._run
        if run is not None and not run.is_over:
            await self._change_mode(run)
        if run is None or not self._accepts(run, prompt) or not await _send(run, prompt, turn):
            await self._check_continuity()
            await self._start(prompt, turn)
        await self._mark_sent(turn)

    async def _change_mode(self, run: SessionRun) -> None:
        """Change between asking and planning in the running agent, if it can; otherwise another run has the mode."""
        (began, *others), (mode, *chosen) = run.choices, self.choices.current()
        if mode == began or others != chosen or not {began, mode} <= _ASKING:
            return
        try:
            await run.handle.set_approval_mode(mode)
        except AgentMuxError:  # it is over, or the agent cannot
            return
        run.choices = self.choices.current()

    async def _mark_sent(self, turn: EditorTurn) -> None:
        turn.is_sent = True
        if turn.is_cancelled:
            await self._interrupt(turn)

    def _accepts(self, run: SessionRun, prompt: EditorPrompt) -> bool:
        """Return whether the run can take the prompt. Attachments and some choices require a new run."""
        return not run.is_over and not prompt.attachments and self._has_same_choices(run)

    def _has_same_choices(self, run: SessionRun) -> bool:
        """Return whether the run has the current choices, as far as they matter.

        An agent without resumable sessions cannot continue in another run. A changed approval mode then applies to its
        requests only.
        """
        (began, *others), (mode, *chosen) = run.choices, self.choices.current()
        if mode == began:
            return others == chosen
        is_answered_here = began == "prompt" and mode != PLAN
        return others == chosen and is_answered_here and not self.adapter.capabilities.can_resume

    async def _start(self, prompt: EditorPrompt, turn: EditorTurn) -> None:
        if self._run is not None:
            await _end_run(self._run)
            await self._run.all_reported.wait()  # its remaining updates and its cost come first
        can = self.adapter.capabilities
        handle = self.mux.run(**self._options(prompt))
        self._runs += 1
        updates = RunUpdates(
            self.cwd, run_id=handle.run_id, window=self.context_window_of(handle.model), spent=self.spent
        )
        run = self._run = SessionRun(handle, updates, self.choices.current(), stays_open=can.interactive_mode)
        run.turn = turn
        self.tasks.start_soon(self._follow, run)

    async def _check_continuity(self) -> None:
        """Raise `CapabilityError` if another run would lose the conversation.

        An agent that takes no more input is exiting. Only the end of its run shows whether it completed its work.
        """
        run = self._run
        if run is None or self.adapter.capabilities.can_resume:
            return
        if run.takes_no_input:
            with anyio.move_on_after(LEAVE_TIMEOUT):
                await run.handle.result()
        ended = run.handle.state
        if ended != "completed":
            what = "resuming in a new process, which this requires"
            hint = f"the last run is {ended}; start a new session"
            raise CapabilityError(self.adapter.agent, what, hint=hint)

    def _options(self, prompt: EditorPrompt) -> dict[str, Any]:
        can, is_first = self.adapter.capabilities, not self._runs
        own = RUN_ID.fullmatch(self.session_id) is not None
        fields = {
            **self.fields,
            **self.choices.chosen,
            "prompt": prompt.text,
            "attachments": prompt.attachments or None,
            "interactive": can.interactive_mode,
            "session_id": self.native_id if can.can_resume else None,
            "fork_session_id": self.forks if self.native_id is None else None,
            "run_id": self.session_id if own and is_first and self.native_id is None else None,
            "tags": (*self.fields.get("tags", ()), *([session_tag(self.session_id)] if own else [])),
            "timeout": 0.0,  # a session waits for its user without limit
            "inactivity_timeout": 0.0,
            "on_approval_request": self._responder.permit if self.choices.mode in _ASKING else None,
            "on_input_required": self._responder.answer,
        }
        return {name: value for name, value in fields.items() if value is not None}

    async def _follow(self, run: SessionRun) -> None:
        try:
            result = await run.follow(partial(self._forward_update, run))
            self._add_cost(result.cost)
        except OSError:  # the editor is disconnected
            return
        finally:
            self.native_id = run.handle.session_id or self.native_id
            run.all_reported.set()

    async def _forward_update(self, run: SessionRun, update: Any) -> None:
        self.native_id = run.handle.session_id or self.native_id
        await self.send_update(update)

    def _add_cost(self, cost: CostRecord | None) -> None:
        if cost is None or cost.source == "unknown" or self.spent is None:
            self.spent = None
        else:
            self.spent += cost.total_usd

    async def _interrupt(self, turn: EditorTurn) -> None:
        run = self._run
        if run is None:
            return
        run.cancel_requests()
        try:
            # The turn of the agent is already finished; only delegated work is not.
            if await run.handle.interrupt() == "unneeded":
                turn.finish("cancelled")
        except AgentMuxError:  # the run cannot be interrupted, or is already over
            await run.handle.abort()
        with anyio.move_on_after(CANCEL_TIMEOUT):
            await turn.over.wait()
            return
        await run.handle.abort()

    @property
    def _responder(self) -> InteractionResponder:
        return InteractionResponder(
            editor=self.editor, editor_capabilities=self.editor_capabilities, session_id=self.session_id, cwd=self.cwd,
            choices=self.choices, run=self._requesting_run,
        )  # fmt: skip

    def _requesting_run(self) -> SessionRun | None:
        return None if self._turn is not None and self._turn.is_cancelled else self._run


async def _send(run: SessionRun, prompt: EditorPrompt, turn: EditorTurn) -> bool:
    """Send a prompt to the run. Return False if the run accepts no more prompts."""
    run.turn = turn
    try:
        delivery = await run.handle.send(prompt.text)
    except AgentMuxError as error:
        run.turn = None
        if error.code in {"RUN_NOT_ACTIVE", "STDIN_NOT_AVAILABLE"}:
            run.takes_no_input = True
            return False
        raise
    turn.is_follow_up = True
    turn.has_begun = turn.has_begun or delivery == "merged"  # merged into a turn that the agent started by itself
    return True


async def _end_run(run: SessionRun) -> None:
    """Close the run, and abort it if the agent does not exit in time."""
    with anyio.move_on_after(LEAVE_TIMEOUT):
        try:
            await run.handle.close()
            await run.handle.result()
        except AgentMuxError:  # the run is already over, or cannot be closed
            pass
    await run.handle.abort()
