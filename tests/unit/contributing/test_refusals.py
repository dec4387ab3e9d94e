"""Every refusal of the service and of the command line states the next step."""

import re
from http import HTTPStatus

import pytest
from tests.unit.contributing.refusals import Refusal, refusals_in

from agent_mux.service import problems

STEP = re.compile(r"; (?=\S)")
"""The next step follows a semicolon."""
USAGE = re.compile(
    r"cannot be combined with|cannot be used here|requires?|needs|must be|expects?|expected|give |pass |use |name "
)
"""How a usage error states what to write."""


def without_step(found: list[Refusal], *forms: re.Pattern[str]) -> list[Refusal]:
    return [one for one in found if not any(form.search(one.message) for form in forms)]


@pytest.mark.parametrize("package", ["service", "cli"])
def test_every_message_states_what_to_do(package: str) -> None:
    found = list(refusals_in(package))
    assert len(found) > 50
    forms = (STEP,) if package == "service" else (STEP, USAGE)
    assert without_step(found, *forms) == []


def test_a_message_that_states_only_what_is_wrong_is_found() -> None:
    wrong = Refusal("x.py:1", "{} is gone")
    assert without_step([wrong, Refusal("x.py:2", "{} is gone; make a new one")], STEP) == [wrong]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 413, 414, 421, 429, 431, 500, 501, 503])
def test_statuses_without_a_message_state_what_to_do(status: int) -> None:
    for detail in ("", HTTPStatus(status).phrase):
        body = problems.status_response(status, detail).body
        assert f"{HTTPStatus(status).phrase}; ".encode() in bytes(body)
