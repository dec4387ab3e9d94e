"""Approval requests of other agents in mode accept-edits: edits pass where the agent's own tools could make them."""

from pathlib import Path

import anyio
import pytest
from tests.unit.embedded.cli.asked_tools import Collected

from agent_loop import Agent, ScriptedProvider, SubAgentReport, SubAgentTask, SubAgentTool
from agent_loop.cli.approvals import Approvals
from agent_loop.cli.errors import UsageError
from agent_loop.cli.mux_runner import _decide, check_agents
from agent_loop.hooks import Hooks
from agent_loop.providers.script import call, say
from agent_loop.workspace import Workspace
from agent_mux import ApprovalDetail, Approve, PendingInteraction
from agent_mux.sdk.interactions import Response

pytestmark = pytest.mark.anyio
WAIT = 60.0


async def response_to(paths: tuple[str, ...], workspace: Workspace | None, directory: Path) -> Response:
    """Return the response to an edit of these files; there is no user who could approve it."""
    detail = ApprovalDetail("edit", "change files", "Edit", "medium", paths=paths)
    request = PendingInteraction("1", "approval", "r1", "change files", detail, 0)
    responses: list[Response] = []

    async def runner(task: SubAgentTask) -> SubAgentReport:
        responses.append(await _decide(task, directory, request))
        return SubAgentReport(status="completed", text="done")

    approvals = Approvals(Collected().stream, "prompt", accepts_edits=True)
    approvals.stop_asking()
    hooks = Hooks()
    approvals.install(hooks)
    model = ScriptedProvider([call("delegate", task="edit"), say("done")])
    agent = Agent(model, tools=[SubAgentTool(runner=runner)], workspace=workspace, hooks=hooks)
    with anyio.fail_after(WAIT):
        await agent.run("go")
    (response,) = responses
    return response


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in ("work", "added", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path / "other")
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("paths", "is_approved"),
    [
        (("new.txt",), True),
        (("{base}/work/new.txt", "{base}/added/new.txt"), True),
        (("{base}/other/new.txt",), False),
        (("new.txt", "../other/new.txt"), False),
        (("link/new.txt",), False),
        ((), False),
    ],
)
async def test_edits_of_another_agent_are_accepted_inside_of_the_workspace_only(
    work: Path, paths: tuple[str, ...], is_approved: bool
) -> None:
    workspace = Workspace(work, writable=[work.parent / "added"])
    response = await response_to(tuple(path.format(base=work.parent) for path in paths), workspace, work)
    assert isinstance(response, Approve) == is_approved


async def test_edits_of_another_agent_need_an_approval_without_a_workspace(work: Path) -> None:
    assert not isinstance(await response_to(("new.txt",), None, work), Approve)


async def test_sub_agent_that_is_no_agent_is_an_error_before_the_run() -> None:
    check_agents(["claude", "codex"])
    with pytest.raises(UsageError, match="--sub-agent: no agent is named 'cluade'; did you mean 'claude'"):
        check_agents(["codex", "cluade"])
