"""What a client may say for all of its runs is the same here and at a service, but for where recordings are."""

from collections.abc import Callable
from typing import Any

import pytest

from agent_mux import AgentMux, RemoteMux
from agent_mux.client.defaults import OWN, SENT, checked_defaults
from agent_mux.errors import ValidationError
from agent_mux.sdk.options import RetryPolicy

CLIENTS = [AgentMux, lambda **defaults: RemoteMux("http://localhost", **defaults)]


def bad_fields(make: Callable[..., Any], **defaults: Any) -> list[str]:
    with pytest.raises(ValidationError) as raised:
        make(**defaults)
    return [one.path for one in raised.value.fields]


@pytest.mark.parametrize("make", CLIENTS, ids=["here", "there"])
def test_a_default_that_is_unknown_or_out_of_range_is_refused(make: Callable[..., Any]) -> None:
    assert bad_fields(make, prompt="hi", nonsense=1, timeout=-1) == ["prompt", "nonsense"]
    assert bad_fields(make, timeout=-1, approval_mode="maybe") == ["timeout", "approval_mode"]
    assert bad_fields(make, retry_policy=RetryPolicy(max_attempts=0)) == ["retry_policy.max_attempts"]
    assert bad_fields(make, retry_policy={"max_attempts": 2}) == ["retry_policy"]


def test_what_is_none_says_nothing() -> None:
    assert checked_defaults({"timeout": None, "debug": False}, SENT) == {"debug": False}


def test_only_runs_that_work_here_choose_where_their_recording_is() -> None:
    assert set(OWN) - set(SENT) == {"journal"}
    AgentMux(journal=False)
    assert bad_fields(CLIENTS[1], journal=False) == ["journal"]
