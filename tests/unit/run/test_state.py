"""The states of a run: all legal and illegal transitions."""

import itertools
import logging
from typing import get_args

import pytest

from agent_mux.assembler import ExitReason
from agent_mux.errors import AgentMuxError
from agent_mux.run.base import TERMINAL_STATES, RunState, StateMachine

STATES: tuple[RunState, ...] = get_args(RunState)
LEGAL = {
    "spawned": {"running"},
    "running": {"paused", "interrupted"},
    "paused": {"running"},
    "interrupted": {"running", "paused"},
}


@pytest.mark.parametrize(("start", "target"), list(itertools.product(STATES, STATES)))
def test_an_illegal_transition_is_refused(start: RunState, target: RunState) -> None:
    machine = StateMachine()
    machine.state = start
    is_legal = start not in TERMINAL_STATES and (target in TERMINAL_STATES or target in LEGAL[start])
    assert machine.allows(target) is is_legal
    if is_legal:
        machine.move(target)
        assert machine.state == target
        return
    with pytest.raises(AgentMuxError, match=f"a run that is {start} cannot become {target}") as caught:
        machine.move(target)
    assert caught.value.code == "INVALID_STATE_TRANSITION"
    assert machine.state == start


@pytest.mark.parametrize("reason", get_args(ExitReason))
@pytest.mark.parametrize("start", ["spawned", "running", "paused", "interrupted"])
def test_every_end_leads_to_a_terminal_state(reason: ExitReason, start: RunState) -> None:
    machine = StateMachine()
    machine.state = start
    machine.finish(reason)
    assert machine.is_over


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("completed", "completed"),
        ("failed", "completed"),
        ("interrupted", "completed"),
        ("turn_limit", "completed"),
        ("budget", "completed"),
        ("aborted", "aborted"),
        ("timeout", "timed-out"),
        ("inactivity", "timed-out"),
        ("killed", "killed"),
        ("lost", "lost"),
        ("crashed", "crashed"),
        ("truncated", "crashed"),
    ],
)
def test_state_after_each_exit_reason(reason: ExitReason, state: RunState) -> None:
    machine = StateMachine()
    machine.move("running")
    machine.finish(reason)
    assert machine.state == state


def test_callback_that_raises_is_logged_and_the_others_are_called(caplog: pytest.LogCaptureFixture) -> None:
    machine, seen = StateMachine(), list[RunState]()

    def fail(_: RunState) -> None:
        raise ValueError("broken callback")

    machine.on_change(fail)
    machine.on_change(seen.append)
    with caplog.at_level(logging.ERROR, "agent_mux"):
        machine.move("running")
        machine.finish("completed")
    assert seen == ["running", "completed"]
    assert caplog.text.count("ValueError: broken callback") == 2
