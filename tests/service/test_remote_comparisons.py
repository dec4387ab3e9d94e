"""`RemoteMux.compare` and `RemoteMux.comparisons`: comparisons of a service from Python."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.compared_agents import CHECK
from tests.service.comparing import comparing, started
from tests.service.serving import Serving

from agent_mux import BlockingRemoteMux, RemoteMux
from agent_mux.cli.main import main
from agent_mux.client.remote.comparison import RemoteComparison, TrialEvent
from agent_mux.client.remote.comparisons import RemoteComparisons
from agent_mux.compare.checks.definitions import FileCheck
from agent_mux.compare.engine import ComparisonRun
from agent_mux.compare.store import Comparisons
from agent_mux.errors import AgentMuxError, CapabilityError

PATIENCE = 120.0  # seconds
LOCAL_ONLY = {"folder", "on_run", "execute", "recorded", "wait"}
"""What concerns the folder on this machine or the process that carries a comparison out."""
OPTIONS: dict[str, Any] = {"timeout": 60.0, "grace_period": 1.0, "approval_mode": "yolo"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("comparisons")


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[Serving]:
    with comparing(place, "fixes", "nothing", "denied", "hangs") as server:
        yield server


@pytest.mark.anyio
async def test_comparison_is_started_watched_and_returned(served: Serving) -> None:
    with anyio.fail_after(PATIENCE):
        async with RemoteMux(served.url) as mux:
            run = await mux.compare("fix it", candidates=["fixes,trials=2", "null"], checks=[CHECK], options=OPTIONS)
            received = [message async for message in run.messages()]
            comparison = await run
            facts = [fact async for fact in run.facts(1)]
    events = [message for message in received if isinstance(message, TrialEvent)]
    assert {(one.trial, one.candidate, one.attempt) for one in events} == {
        ("fixes-1", "fixes", 1),
        ("fixes-2", "fixes", 1),
    }
    assert [type(fact).__name__ for fact in facts] == [
        type(message).__name__ for message in received if not isinstance(message, TrialEvent)
    ][1:]
    verdicts = {trial.id: trial.outcome.verdict for trial in comparison.trials if trial.outcome is not None}
    assert verdicts == {"fixes-1": "pass", "fixes-2": "pass", "null-1": "fail"}


@pytest.mark.slow
@pytest.mark.anyio
async def test_pending_approval_is_answered(served: Serving) -> None:
    with anyio.fail_after(PATIENCE):
        async with RemoteMux(served.url) as mux:
            run = await mux.compare("x", candidates=["denied"], options={**OPTIONS, "approval_mode": "prompt"})
            async for message in run.messages():
                if isinstance(message, TrialEvent) and message.event.type == "approval_request":
                    assert await run.deny("denied-1", "no") == "applied"
            comparison = await run.result()
            with pytest.raises(AgentMuxError) as caught:
                await run.steer("denied-1", "hello")
    assert caught.value.code == "RUN_NOT_ACTIVE"
    assert comparison.trials[0].outcome is not None
    assert comparison.trials[0].outcome.cause == "denied"


@pytest.mark.slow
@pytest.mark.anyio
async def test_leaving_the_block_stops_the_comparison_and_it_is_resumed(served: Serving) -> None:
    with anyio.fail_after(PATIENCE):
        async with RemoteMux(served.url) as mux:
            run = await mux.compare("x", candidates=["hangs", {"kind": "null"}], options=OPTIONS, jobs=1, seed=1)
            async for message in run.messages():
                if isinstance(message, TrialEvent):
                    break
        stored = await anyio.to_thread.run_sync(RemoteMux(served.url).comparisons.get, run.id)
        assert stored.status == "interrupted"
        async with RemoteMux(served.url) as mux:
            again = await mux.resume_comparison(run.id[:24])
            async for message in again.messages():
                if isinstance(message, TrialEvent) and message.attempt == 2:
                    assert await again.abort("hangs-1") == "applied"
                    break
            comparison = await again
    assert comparison.status == "ended"
    assert len(comparison.trials[0].attempts) == 2


@pytest.mark.slow
@pytest.mark.anyio
async def test_failure_is_raised_by_the_result(served: Serving) -> None:
    with anyio.fail_after(PATIENCE):
        async with RemoteMux(served.url) as mux:
            run = await mux.compare("x", candidates=["null"], checks=["no-such-program-anywhere"])
            with pytest.raises(AgentMuxError, match="no-such-program-anywhere") as caught:
                await run
    assert caught.value.code == "CONFIG_ERROR"


@pytest.mark.anyio
async def test_invalid_requests_name_the_field(served: Serving) -> None:
    with anyio.fail_after(PATIENCE):
        async with RemoteMux(served.url) as mux:
            with pytest.raises(AgentMuxError, match="one of: checks, trials"):
                await mux.compare("x", candidates=["null"], colour="red")  # type: ignore[call-arg]
            with pytest.raises(AgentMuxError, match="in /"):
                await mux.compare("x", candidates=["null"], cwd="/")


@pytest.mark.slow
def test_stored_comparisons_are_those_of_the_library(served: Serving, place: Path) -> None:
    with BlockingRemoteMux(served.url) as mux:
        finished = mux.compare(
            "fix it",
            candidates=["fixes", "nothing"],
            checks=[CHECK, FileCheck(file="calc.py", exists=True)],
            options=OPTIONS,
        )
        here, there = Comparisons(place / "config" / "service"), mux.comparisons
        name = finished.plan.id
        assert there.get() == there.get(name[:25]) == here.get(name) == finished
        assert there.list() == here.list()
        assert there.trial("fixes", name) == here.trial("fixes", name)
        assert there.patch("fixes", name) == here.patch("fixes", name) != b""
        assert there.difference("nothing", "fixes") == here.difference("nothing", "fixes", name) != b""
        assert there.select("cheapest", name) == here.select("cheapest", name)
        assert there.report(name).gate.status == "passed"
        assert "fixes" in there.export("markdown")
        with pytest.raises(CapabilityError):
            there.folder(name)
        assert there.remove(name) == name
        for call in (lambda: there.get(name), lambda: there.get("0"), lambda: there.trial("nobody")):
            with pytest.raises(AgentMuxError) as caught:
                call()
            assert caught.value.code == "NOT_FOUND"


def test_every_local_method_exists_remotely() -> None:
    for here, there in ((Comparisons, RemoteComparisons), (ComparisonRun, RemoteComparison)):
        methods = {name for name in vars(here) if not name.startswith("_")} - LOCAL_ONLY
        assert methods <= set(dir(there)) | {"id"}


@pytest.mark.slow
def test_applied_trial_has_its_checks(tmp_path: Path) -> None:
    with comparing(tmp_path, "fixes") as served:
        comparison = started(served.http, "fixes")
        remote = RemoteMux(served.url).comparisons
        served.http.get(f"/v1/comparisons/{comparison}/events?events=false")
        applied = remote.apply("fixes", comparison)
        assert applied.files == ("calc.py",)
        assert [check.status for check in applied.checks] == ["pass"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "list",
        "list --json",
        "show",
        "show {id} --json --select fastest",
        "diff fixes",
        "diff nothing fixes --in {id}",
        "export",
        "show 0",
        "diff nobody",
    ],
)
def test_commands_print_the_same_for_a_service(
    served: Serving, place: Path, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    stored = served.http.get("/v1/comparisons", params={"owner": "", "status": "ended"}).json()["comparisons"]
    names = [one["id"] for one in stored if one["prompt"] == "for commands"]
    if not names:
        names = [started(served.http, "fixes", "nothing", prompt="for commands")]
        served.http.get(f"/v1/comparisons/{names[0]}/events?events=false")

    def printed(*more: str) -> tuple[int, str]:
        capfd.readouterr()
        code = main(["compare", *command.format(id=names[0]).split(), *more])
        return code, capfd.readouterr().out

    there = printed("--server", served.url)
    assert there == printed("--config-dir", str(place / "config" / "service"))
    assert there[1] or there[0]


@pytest.mark.slow
def test_commands_change_comparisons_of_a_service(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with comparing(tmp_path, "fixes") as served:
        comparison = started(served.http, "fixes")
        served.http.get(f"/v1/comparisons/{comparison}/events?events=false")
        page = tmp_path / "report.html"
        assert main(["compare", "export", comparison, "-o", str(page), "--server", served.url]) == 0
        assert "<table" in page.read_text()
        assert main(["compare", "apply", "fixes", "--server", served.url]) == 0
        assert "1 changed file of fixes-1 applied to" in capfd.readouterr().err
        assert main(["compare", "delete", comparison, "--server", served.url]) == 0
        capfd.readouterr()
        assert main(["compare", "resume", comparison, "--server", served.url]) == 2
        assert comparison in capfd.readouterr().err
