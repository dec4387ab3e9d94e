"""Who answers what the agent asks: what was chosen for the session, else the person in the editor."""

from collections.abc import Callable
from dataclasses import dataclass

from acp.schema import ClientCapabilities

from agent_mux.acp_agent.asking import NOT_DECIDED, Editor, ask_permission, ask_question
from agent_mux.acp_agent.choices import Choices
from agent_mux.acp_agent.running import SessionRun
from agent_mux.run.interaction import Approve, Deny, PendingInteraction
from agent_mux.run.interaction import Response as Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """For one session. Its methods are callbacks of runs: policies and hooks come before them."""

    editor: Editor
    editor_can: ClientCapabilities | None
    session_id: str
    cwd: str
    choices: Choices
    run: Callable[[], SessionRun | None]
    """The run that asks; None where nobody waits for an answer any more."""

    async def permit(self, waiting: PendingInteraction) -> Answer:
        """May it?"""
        match self.choices.mode:  # it may have been chosen since the run began
            case "yolo":
                return Approve()
            case "deny":
                return Deny("this session allows nothing that needs permission")
        return await self._ask(waiting)

    async def answer(self, waiting: PendingInteraction) -> Answer:
        """What shall it be?"""
        return await self._ask(waiting)

    async def _ask(self, waiting: PendingInteraction) -> Answer:
        run = self.run()
        answer: Answer = NOT_DECIDED
        if run is None:
            return answer
        with run.asking(waiting.id):
            await run.until_told(waiting.id)
            if waiting.type == "approval":
                call_id = run.updates.call_of(waiting)
                answer = await ask_permission(self.editor, self.session_id, waiting, call_id, self.cwd)
            else:
                answer = await ask_question(self.editor, self.session_id, waiting, self.editor_can)
        return answer
