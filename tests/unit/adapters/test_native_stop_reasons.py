"""Why an answer ended, in native terms."""

from typing import Any

import pytest

from agent_mux.sdk.facts import TurnDone, TurnFailed
from agent_mux_adapters._dialects.stop_reasons import STOP_REASONS, answered, stop_reason_of


@pytest.mark.parametrize("native", ["", "unheard-of", None, 3, [], {"stop": 1}])
def test_unknown_reason_is_none(native: Any) -> None:
    assert stop_reason_of(native) is None
    assert answered(native) == TurnDone()


@pytest.mark.parametrize(("native", "reason"), STOP_REASONS.items())
def test_filtered_answers_fail(native: str, reason: str) -> None:
    closing = answered(native, structured_output={"a": 1})
    if reason == "filtered":
        assert isinstance(closing, TurnFailed)
        assert (closing.failure.code, closing.stop_reason) == ("CONTENT_FILTERED", "filtered")
    else:
        assert closing == TurnDone(structured_output={"a": 1}, stop_reason=reason)  # type: ignore[arg-type]
