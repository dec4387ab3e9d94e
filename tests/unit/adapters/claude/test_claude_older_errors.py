"""Errors of older releases: a text of the CLI, which the result of the turn repeats."""

from typing import Any

import pytest
from tests.unit.adapters.codec_conversation import facts_of, receive

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Codec, CodecContext, CodecOutput, Exit
from agent_mux_adapters.claude import ADAPTER


def codec() -> Codec:
    return ADAPTER.protocols["stream-json"].codec(CodecContext(agent="claude", protocol="stream-json", cwd="/p"))


def of_the_cli(text: str, **line: Any) -> dict[str, Any]:
    message = {"id": "m", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": "s", **line}


def result(text: str, *, failed: bool) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": failed, "result": text, "session_id": "s"}


def facts_from(*lines: dict[str, Any]) -> list[CodecOutput]:
    return facts_of(receive(codec(), *lines))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Invalid API key · Fix external API key", "AUTH_ERROR"),
        ("OAuth token revoked · Please run /login", "AUTH_ERROR"),
        ('API Error: 401 {"type":"error"}', "AUTH_ERROR"),
        ('API Error: 429 {"type":"error"}', "RATE_LIMITED"),
        ("Claude AI usage limit reached|1760000000", "RATE_LIMITED"),
        ("Prompt is too long", "CONTEXT_EXCEEDED"),
        ("Credit balance is too low", "AGENT_CRASH"),
    ],
)
def test_text_that_the_failed_result_repeats_is_an_error(text: str, code: str) -> None:
    *before, failed = facts_from(of_the_cli(text), result(text, failed=True))
    assert isinstance(failed, facts.TurnFailed)
    assert (failed.failure.code, failed.failure.message) == (code, text)
    assert not [fact for fact in before if isinstance(fact, facts.WholeText)]


def test_text_that_no_error_repeats_is_a_message() -> None:
    assert facts.WholeText("No response requested.") in facts_from(
        of_the_cli("No response requested."), result("No response requested.", failed=False)
    )


def test_text_before_the_end_of_the_output_is_a_message() -> None:
    reading = codec()
    receive(reading, of_the_cli("Stopped."))
    assert facts.WholeText("Stopped.") in list(reading.finish(Exit(code=0)))


def test_output_of_a_local_command_is_emitted_at_once() -> None:
    shown = of_the_cli("## Context", local_command_source="<local-command-stdout>")
    assert facts.WholeText("## Context") in facts_from(shown)
