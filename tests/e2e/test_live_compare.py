"""One comparison of real CLIs whose models behave differently: the outcomes tell them apart."""

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.e2e.harness import LiveAgent, processes_using, replay_journal
from tests.e2e.ways import CORE, HEAVY
from tests.process.compared_agents import CHECK, git, make_repository, state_of

from agent_mux import AgentMux, validate
from agent_mux.compare.records import Comparison, Trial
from agent_mux_testing.live import DUMMY_KEY, Say, Shell, Write, early_end
from agent_mux_testing.model_server import ScriptStep
from agent_mux_testing.provision import find_agent

pytestmark = pytest.mark.anyio
BOUND = 400.0  # seconds; the comparison takes about 30 on an idle machine
HIDDEN_MARK = "only the hidden test has this text"
HIDDEN_TEST = f"""\
import unittest
from calc import add


class Hidden(unittest.TestCase):
    def test(self):
        self.assertEqual(add(1, 5), 6, {HIDDEN_MARK!r})
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What the model behind one candidate does, and how its trial ends."""

    steps: Callable[[LiveAgent, Path], tuple[ScriptStep, ...]]
    """The answers of its model; the second argument is the directory of the test."""
    outcome: tuple[str, str]
    """Verdict and cause."""
    options: Mapping[str, Any] = field(default_factory=dict)


def fixes(live: LiveAgent, directory: Path) -> tuple[ScriptStep, ...]:
    """Search for solutions outside of the workspace first."""
    search = f"cat {directory}/hidden/test_hidden.py; ls {directory}/project/repository; true"
    return (
        live.answer(Shell(search)),
        live.answer(Shell("sed -i 's/a - b/a + b/' calc.py")),
        live.answer(Say("Fixed.")),
    )


def passes_visible_tests_only(live: LiveAgent, _: Path) -> tuple[ScriptStep, ...]:
    return live.answer(Shell("sed -i 's/a - b/4/' calc.py")), live.answer(Say("Fixed."))


def edits_tests(live: LiveAgent, _: Path) -> tuple[ScriptStep, ...]:
    return live.answer(Write("test_calc.py", "import unittest\n")), live.answer(Say("All tests pass."))


def is_denied(live: LiveAgent, _: Path) -> tuple[ScriptStep, ...]:
    return live.answer(Write("calc.py", "fixed\n")), live.answer(Say("I may not change the file."), repeat=True)


def is_rate_limited(live: LiveAgent, _: Path) -> tuple[ScriptStep, ...]:
    return (live.refusal("rate_limited", repeat=True),)


def is_cut(live: LiveAgent, _: Path) -> tuple[ScriptStep, ...]:
    return (live.answer(Say("The first half of"), repeat=True, **early_end(live.kit.api, "length")),)


BEHAVIOURS = {
    "claude": Behaviour(steps=fixes, outcome=("pass", "completed")),
    "opencode": Behaviour(steps=passes_visible_tests_only, outcome=("fail", "completed")),
    "gemini": Behaviour(steps=edits_tests, outcome=("fail", "completed")),
    "native": Behaviour(
        steps=is_denied,
        outcome=("fail", "denied"),
        options={"approval_mode": "deny", "model": "openai-chat:gpt-5-mini"},  # its settings are not those of its kit
    ),
    "codex": Behaviour(steps=is_rate_limited, outcome=("infra", "rate_limited")),
    "pi": Behaviour(steps=is_cut, outcome=("fail", "length")),
}


def candidate_of(live: LiveAgent, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent as a candidate, in an environment that contains only what its kit names."""
    start = live.launch
    config = live.adapter.installation().config_directory
    # Without it the agent would share the configuration directory of its kit, instead of having a copy.
    own = {} if config is None else {config.variable}
    env = {name: value for name, value in start.environment.items() if name not in own}
    return {
        "agent": live.agent,
        "name": live.agent,
        "env": env,
        "inherit_env": False,
        "approval_mode": "yolo",
        **options,
    }


def new_directory(path: Path) -> Path:
    path.mkdir()
    return path


def trials_of(comparison: Comparison) -> dict[str, Trial]:
    return {trial.candidate: trial for trial in comparison.trials}


@CORE
@HEAVY
async def test_comparison_tells_real_agents_apart(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "project" / "repository")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "test_hidden.py").write_text(HIDDEN_TEST)
    before = state_of(repository)
    with ExitStack() as stack:
        agents = {
            name: LiveAgent(found, new_directory(tmp_path / name), stack)
            for name in BEHAVIOURS
            if (found := find_agent(name, None))
        }
        if "claude" not in agents:
            pytest.skip("claude is not installed; try: python -m agent_mux_testing.provision claude")
        for name, live in agents.items():
            live.script(*BEHAVIOURS[name].steps(live, tmp_path))
        with anyio.fail_after(BOUND):
            async with AgentMux(config_dir=tmp_path / "mux") as mux:
                run = await mux.compare(
                    "Make the failing test pass.",
                    candidates=[candidate_of(live, BEHAVIOURS[name].options) for name, live in agents.items()],
                    cwd=repository,
                    checks=[CHECK],
                    hidden_checks=hidden,
                    jobs=3,
                    options={"timeout": 240.0, "max_model_calls": 10},
                )
                comparison = await run.result()
        trials = trials_of(comparison)
        found = {name: (one.outcome.verdict, one.outcome.cause) for name, one in trials.items() if one.outcome}
        assert found == {name: BEHAVIOURS[name].outcome for name in agents}, comparison
        assert state_of(repository) == before
        assert_isolated(comparison, agents["claude"])
        for name, live in agents.items():
            assert_reported(run.folder, trials[name], live)
            assert processes_using(live.home, tmp_path / "mux") == []
        assert_distinguished(trials)
        await assert_patch_repairs(run.folder, trials["claude"], repository)
    assert not list((tmp_path / "mux" / "workspaces").iterdir())
    missing = sorted(set(BEHAVIOURS) - set(agents))
    if missing:
        names = " ".join(missing)
        pytest.skip(f"passed without {names}: not installed; try: python -m agent_mux_testing.provision {names}")


def assert_isolated(comparison: Comparison, searcher: LiveAgent) -> None:
    """Assert that no agent could reach a solution, and that the attempt is reported."""
    assert [note for note in comparison.notes if "not isolated" in note] == []
    assert {trial.is_isolated for trial in comparison.trials} == {True}
    assert not any(searcher.model.received(HIDDEN_MARK, number) for number in range(len(searcher.model.requests)))
    (trial,) = [trial for trial in comparison.trials if trial.candidate == searcher.agent]
    assert {Path(access.path).name for access in trial.accesses} == {"test_hidden.py", "repository"}


def assert_reported(folder: Path, trial: Trial, live: LiveAgent) -> None:
    """Assert that the journals of a trial replay, and that its usage is what the agent reported there."""
    for attempt in trial.attempts:
        assert attempt.journal is not None
        journal = folder / attempt.journal
        assert DUMMY_KEY.encode() not in journal.read_bytes()
        events = replay_journal(journal)
        assert validate(events) == []
        costs = [cost for event in events if event.type == "session_end" and (cost := event.cost) is not None]
        known = [cost.total_usd for cost in costs if cost.source != "unknown"]
        assert [attempt.usage.cost_usd] == (known or [None])
        assert attempt.usage.agent_version in {live.provisioned.version, None}
    last = trial.last
    assert last is not None
    if trial.outcome is not None and trial.outcome.verdict != "infra":
        answered = len(live.model.requests)
        assert (last.usage.model_calls, last.usage.output_tokens) == (
            answered,
            live.kit.per_call.output_tokens * answered,
        )


def assert_distinguished(trials: Mapping[str, Trial]) -> None:
    """Assert what distinguishes the trials beside their outcomes."""
    if "opencode" in trials:
        assert [(check.name, check.status) for check in trials["opencode"].checks] == [(CHECK, "fail")]
        assert HIDDEN_MARK in trials["opencode"].checks[0].output
    if "gemini" in trials:
        assert trials["gemini"].tampered == ("test_calc.py",)
    if "codex" in trials:
        assert len(trials["codex"].attempts) == 2
        assert trials["codex"].checks == ()
    if "native" in trials:
        assert trials["native"].patch is None
        assert trials["native"].attempts[-1].usage.denials > 0


async def assert_patch_repairs(folder: Path, winner: Trial, repository: Path) -> None:
    """Assert that `git apply` of the winner's patch makes the failing test pass."""
    assert winner.patch is not None
    git(repository, "apply", str(folder / winner.patch.path))
    with anyio.fail_after(BOUND):
        await anyio.run_process([sys.executable, "-m", "unittest", "-q"], cwd=repository)
