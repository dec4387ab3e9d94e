"""A message that Codex completed before its model call was repeated."""

import pytest

from agent_mux.sdk import facts
from agent_mux_adapters.codex.held_message import HeldMessage

RETRY = facts.Retrying(1, 5, "stream disconnected")
QUOTA = facts.QuotaReported(())


@pytest.mark.parametrize("last", [facts.TextEnd(), facts.WholeText("Hello")])
def test_next_fact_ends_the_message(last: facts.Fact) -> None:
    held = HeldMessage()
    assert held.pass_on((facts.StepBegin(), last)) == (facts.StepBegin(),)
    assert held.pass_on((QUOTA,)) == (QUOTA,)
    assert held.pass_on((facts.StepDone(),)) == (last, facts.StepDone())
    assert held.is_empty


@pytest.mark.parametrize(
    ("last", "opened"), [(facts.TextEnd(), ()), (facts.WholeText("Hel"), (facts.TextDelta("Hel"),))]
)
def test_retry_leaves_the_message_open(last: facts.Fact, opened: tuple[facts.Fact, ...]) -> None:
    held = HeldMessage()
    held.pass_on((last,))
    assert held.pass_on((QUOTA, RETRY)) == (*opened, QUOTA, RETRY)
    assert held.release() == ()


def test_line_with_nothing_but_an_end_is_no_unknown_line() -> None:
    (step,) = HeldMessage().pass_on((facts.TextEnd(),))
    assert isinstance(step, facts.Ignored)


def test_messages_follow_each_other() -> None:
    held = HeldMessage()
    one, two = facts.WholeText("1"), facts.WholeText("2")
    held.pass_on((one,))
    assert held.pass_on((two,)) == (one,)
    assert held.release() == (two,)
