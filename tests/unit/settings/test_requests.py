"""What a request says of callbacks, which stay where the caller is."""

import pytest

from agent_mux import ValidationError
from agent_mux.settings.requests import PENDING, leave_pending, request_from_json, request_to_json


def test_a_callback_is_sent_as_somebody_who_answers() -> None:
    told = request_to_json({"prompt": "hi", "on_approval_request": print, "on_input_required": None})
    assert told == {"prompt": "hi", "onApprovalRequest": PENDING}
    assert request_from_json(told) == {"prompt": "hi", "on_approval_request": leave_pending}
    assert leave_pending(object()) is None


@pytest.mark.parametrize("value", [True, "print", {}, 1])
def test_nothing_else_is_one(value: object) -> None:
    with pytest.raises(ValidationError, match="the client answers through the service"):
        request_from_json({"prompt": "hi", "onInputRequired": value})


@pytest.mark.parametrize("said", [{"journal": "/tmp/x"}, {"collect_events": True}])
def test_what_only_means_something_here_is_not_sent(said: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="cannot be sent"):
        request_to_json(said)
