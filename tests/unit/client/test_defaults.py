"""Both clients accept the same defaults for their runs, except for the place of recordings."""

from collections.abc import Callable
from typing import Any

import pytest

from agent_mux import AgentMux, BlockingAgentMux, RemoteMux
from agent_mux.client.base import LOCAL_DEFAULTS, REMOTE_DEFAULTS, validate_defaults
from agent_mux.errors import ValidationError
from agent_mux.sdk.options import RetryPolicy

CLIENTS = [AgentMux, lambda **defaults: RemoteMux("http://localhost", **defaults)]


def bad_fields(make: Callable[..., Any], **defaults: Any) -> list[str]:
    with pytest.raises(ValidationError) as raised:
        make(**defaults)
    return [one.path for one in raised.value.fields]


@pytest.mark.parametrize("make", CLIENTS, ids=["local", "remote"])
def test_a_default_that_is_unknown_or_out_of_range_is_refused(make: Callable[..., Any]) -> None:
    assert bad_fields(make, prompt="hi", nonsense=1, timeout=-1) == ["prompt", "nonsense"]
    assert bad_fields(make, timeout=-1, inactivity_timeout=-1) == ["timeout", "inactivity_timeout"]
    assert bad_fields(make, timeout=-1, approval_mode="maybe") == ["approval_mode"]
    assert bad_fields(make, retry_policy={"max_attempts": 0}) == ["retry_policy.max_attempts"]
    assert bad_fields(make, retry_policy={"max_atempts": 2}) == ["retry_policy.max_atempts"]


@pytest.mark.parametrize("make", CLIENTS, ids=["local", "remote"])
def test_the_error_of_an_unknown_default_names_the_nearest_or_the_place(make: Callable[..., Any]) -> None:
    with pytest.raises(ValidationError, match=r"timout: got 5; .*did you mean 'timeout'"):
        make(timout=5)
    with pytest.raises(ValidationError, match="did you mean 'default_agent'"):
        make(default_agnt="claude")
    with pytest.raises(ValidationError, match=r"pass tags to run\(\)"):
        make(tags=["x"])


def test_a_default_retry_policy_may_be_a_mapping() -> None:
    policy = AgentMux(retry_policy={"max_attempts": 2}).resolve_options(agent="a", prompt="x").options.retry_policy
    assert policy == RetryPolicy(max_attempts=2)


def test_a_default_of_none_is_not_given() -> None:
    assert validate_defaults({"timeout": None, "debug": False}, REMOTE_DEFAULTS) == {"debug": False}


@pytest.mark.parametrize("kind", [AgentMux, BlockingAgentMux])
def test_settled_is_a_deprecated_name_of_resolve_options(kind: type[AgentMux | BlockingAgentMux]) -> None:
    client = kind(default_agent="a")
    with pytest.warns(DeprecationWarning, match="use `resolve_options`"):
        assert client.settled(prompt="x") == client.resolve_options(prompt="x")


def test_only_local_runs_choose_where_their_recording_is() -> None:
    assert set(LOCAL_DEFAULTS) - set(REMOTE_DEFAULTS) == {"journal"}
    AgentMux(journal=False)
    assert bad_fields(CLIENTS[1], journal=False) == ["journal"]
