"""Standard error, and reports of commands."""

from typing import Any

import pytest
from gemini_recordings import STREAM_JSON, new_codec
from tests.unit.adapters.codec_conversation import receive

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Source
from agent_mux_adapters.gemini.notices import GeminiStderr
from agent_mux_adapters.gemini.outcome import failure_of, failure_of_exit
from agent_mux_adapters.gemini.tool_results import ShellReport, read_report

PROMPT = {"type": "message", "role": "user", "content": "do it"}
DONE = {"type": "result", "status": "success", "stats": {}}
RETRY = b"Attempt 1 failed: Resource exhausted, retry."


def on_stderr(*lines: bytes, before: tuple[object, ...] = (PROMPT,), **context: Any) -> list[Any]:
    codec = new_codec(STREAM_JSON, **context)
    receive(codec, *before)
    return list(receive(codec, *lines, source=Source.STDERR))


# -- reports


@pytest.mark.parametrize(
    ("shown", "report"),
    [
        ("Output: out\nerr\nExit Code: 3\nProcess Group PGID: 12", ShellReport("out\nerr", 3)),
        ("Output: (empty)\nExit Code: 4\nProcess Group PGID: 12", ShellReport("", 4)),
        ("Output: out\nProcess Group PGID: 12", ShellReport("out", 0)),
        ("Output: (empty)\nSignal: 9\nProcess Group PGID: 12", ShellReport("", -1, "ended by signal 9")),
        ("Output: a\nBackground PIDs: 3, 4\nProcess Group PGID: 12", ShellReport("a", 0)),
        ("Output: a\nExit Code: 1\nBackground PIDs: 3\nProcess Group PGID: 12", ShellReport("a", 1)),
        ("Output: Exit Code: 5\nmore\nProcess Group PGID: 12", ShellReport("Exit Code: 5\nmore", 0)),
        ("Output: just text", ShellReport("Output: just text")),
        ("Command exited with code: 4", ShellReport("", 4)),
        ("Command terminated by signal: 9", ShellReport("", -1, "Command terminated by signal: 9")),
        ("out", ShellReport("out")),
        ("", ShellReport("")),
    ],
)
def test_command_report_is_parsed_from_the_end(shown: str, report: ShellReport) -> None:
    assert read_report(shown) == report


def older_report(output: str, **fields: str) -> str:
    """Return a report of an older release, which writes every field."""
    values = {"Error": "(none)", "Exit Code": "0", "Signal": "0", "Background PIDs": "(none)", **fields}
    lines = [f"{name}: {value}" for name, value in values.items()]
    head = "Command: echo a\necho b\nDirectory: (root)"
    return "\n".join([head, f"Output: {output}", *lines, "Process Group PGID: 7"])


@pytest.mark.parametrize(
    ("shown", "report"),
    [
        (older_report("out"), ShellReport("out", 0)),
        (older_report("out\nError: mine", **{"Exit Code": "3"}), ShellReport("out\nError: mine", 3)),
        (older_report("(empty)", Signal="9"), ShellReport("", -1, "ended by signal 9")),
        (older_report("(empty)", Signal="(none)"), ShellReport("", 0)),
        (older_report("(empty)", Error="spawn ENOENT", **{"Exit Code": "(none)"}), ShellReport("", -1, "spawn ENOENT")),
    ],
)
def test_command_report_of_an_older_release_is_parsed(shown: str, report: ShellReport) -> None:
    assert read_report(shown) == report


def test_a_command_that_was_cut_short_did_not_succeed() -> None:
    shown = "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output."
    assert read_report(shown) == ShellReport("", -1, shown)
    assert read_report("Command cancelled by user.").exit_code == -1


def test_long_report_is_parsed_quickly() -> None:
    output = "x\n" * 500_000
    assert read_report(f"Output: {output}Exit Code: 2\nProcess Group PGID: 1").exit_code == 2


# -- standard error


def test_retry_is_emitted() -> None:
    limited, retry = on_stderr(RETRY)
    assert limited == facts.RateLimited(None)
    assert retry == facts.Retrying(1, 0, "Resource exhausted, retry")


def test_retry_on_one_line_reports_its_delay() -> None:
    [retry] = on_stderr(b"Attempt 2 failed with status 500. Retrying with backoff...")
    assert retry == facts.Retrying(2, 0, "status 500. Retrying with backoff")
    [waiting] = on_stderr(b"Attempt 2 failed: Internal error. Retrying after 600ms...")
    assert waiting == facts.Retrying(2, 0, "Internal error", 600)


def test_the_last_attempt_is_no_retry() -> None:
    [line] = on_stderr(b"Attempt 3 failed: Internal error. Max attempts reached")
    assert isinstance(line, facts.LogLine)


@pytest.mark.parametrize("before", [(), (PROMPT, DONE)])
def test_retry_is_emitted_only_during_a_turn(before: tuple[object, ...]) -> None:
    assert on_stderr(RETRY, before=before) == [facts.LogLine(RETRY.decode(), "stderr")]


def test_diagnostics_are_shown_only_in_debug_runs() -> None:
    line = b'[MESSAGE_BUS] publish: {"type":"tool-calls-update"}'
    [silent] = on_stderr(line)
    assert isinstance(silent, facts.Ignored)
    assert on_stderr(line, debug=True) == [facts.LogLine(line.decode(), "stderr")]


def test_final_message_follows_harmless_lines() -> None:
    error = GeminiStderr(show_all=False)
    for line in (b"old", b"Warning: no colours", b"\x1b[31mIt is not trusted.\x1b[0m", b"[STARTUP] x", b"Do this."):
        error.receive(line, in_turn=False)
    assert error.final_message == "It is not trusted.\nDo this."


def test_final_message_may_be_empty() -> None:
    assert GeminiStderr(show_all=False).final_message == ""
    failure = failure_of_exit(41, "")
    assert failure is not None
    assert failure.message == "gemini exited with code 41"


# -- failures


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        ("[API Error: Resource exhausted, retry.\nSuggested retry after 1s.]", None, "RATE_LIMITED"),
        ("nobody knows", 429, "RATE_LIMITED"),
        ("nobody knows", 401, "AUTH_ERROR"),
        ("nobody knows", 500, "AGENT_CRASH"),
        ('[API Error: {"error":{"code":401,"message":"who?"}}]', None, "AUTH_ERROR"),
        ('{"error":"broken"}', None, "AGENT_CRASH"),
    ],
)
def test_failure_code_is_found_by_phrase_or_status(message: str, status: int | None, code: str) -> None:
    assert failure_of(message, status).code == code


def test_retry_delay_of_the_provider_is_parsed() -> None:
    assert failure_of("quota exceeded. Please retry in 12.5s.").retry_after_ms == 12_500
