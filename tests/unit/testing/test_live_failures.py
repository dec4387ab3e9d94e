"""Failures of a provider, in the form of each API."""

from typing import get_args

import pytest

from agent_mux_testing.live import EARLY_ENDS, STATUSES, EarlyEnd, ModelApi, early_end, provider_error
from agent_mux_testing.model_server import ScriptStep

APIS: tuple[ModelApi, ...] = get_args(ModelApi)


@pytest.mark.parametrize("api", APIS)
def test_every_status_is_an_error_with_its_message(api: ModelApi) -> None:
    steps = {status: provider_error(api, status) for status in STATUSES}
    errors = {status: step.error for status, step in steps.items() if step.error is not None}
    assert {status: error.status for status, error in errors.items()} == {status: status for status in STATUSES}
    assert len({error.body["error"]["message"] for error in errors.values()}) == len(STATUSES)
    assert "retry-after" in errors[529].headers
    assert errors[401].headers == {}


@pytest.mark.parametrize("end", EARLY_ENDS)
@pytest.mark.parametrize("api", APIS)
def test_answer_that_ends_early_states_its_reason(api: ModelApi, end: EarlyEnd) -> None:
    step = ScriptStep(**early_end(api, end))
    assert (step.incomplete is not None) == (api == "responses")
    assert (step.stop_reason is None) == (api == "responses")
