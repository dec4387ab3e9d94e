"""Requests: callbacks are sent as pending, local fields are not sent."""

import pytest

from agent_mux import Defer, ValidationError
from agent_mux.settings.requests import PENDING, leave_pending, request_from_json, request_to_json


def test_callback_is_sent_as_pending() -> None:
    content = request_to_json({"prompt": "hi", "on_approval_request": print, "on_input_required": None})
    assert content == {"prompt": "hi", "onApprovalRequest": PENDING}
    assert request_from_json(content) == {"prompt": "hi", "on_approval_request": leave_pending}
    assert leave_pending(object()) == Defer()


@pytest.mark.parametrize("value", [True, "print", {}, 1])
def test_other_values_of_a_callback_are_rejected(value: object) -> None:
    with pytest.raises(ValidationError, match="the client answers through the service"):
        request_from_json({"prompt": "hi", "onInputRequired": value})


@pytest.mark.parametrize("fields", [{"journal": "/tmp/x"}, {"collect_events": True}])
def test_local_fields_are_not_sent(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="cannot be sent"):
        request_to_json(fields)
