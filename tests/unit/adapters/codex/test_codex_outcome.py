"""Failures, retries, diffs and token counters of Codex, and the JSON-RPC client."""

import pytest

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.jsonrpc import JsonRpcClient, PendingRequest, RpcError
from agent_mux_adapters.codex.outcome import error_code_of, failure_of, read_retry, session_error_code_of
from agent_mux_adapters.codex.tools import CodexFileChange, FileChangeKind, file_effects_of, unified_diff
from agent_mux_adapters.codex.usage import TokenCounter
from agent_mux_adapters.codex.wire import CodexTokens


@pytest.mark.parametrize(
    ("message", "info", "code"),
    [
        ("anything", "unauthorized", "AUTH_ERROR"),
        ("anything", "usageLimitExceeded", "RATE_LIMITED"),
        ("anything", "rateLimitExceeded", "RATE_LIMITED"),
        ("anything", "contextWindowExceeded", "CONTEXT_EXCEEDED"),
        ("anything", {"httpConnectionFailed": {"httpStatusCode": 401}}, "AUTH_ERROR"),
        ("anything", {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, "RATE_LIMITED"),
        ("anything", {"responseStreamDisconnected": {"httpStatusCode": None}}, "AGENT_CRASH"),
        ("anything", {"responseStreamDisconnected": "x"}, "AGENT_CRASH"),
        ("anything", "serverOverloaded", "AGENT_CRASH"),
        ("You're not logged in", None, "AUTH_ERROR"),
        ("exceeded retry limit, last status: 429 Too Many Requests", None, "RATE_LIMITED"),
        ("Quota exceeded. Check your plan and billing details.", "other", "RATE_LIMITED"),
        ("the file 401.txt is missing", None, "AGENT_CRASH"),
        ("", 7, "AGENT_CRASH"),
    ],
)
def test_a_failure_has_a_code(message: str, info: object, code: str) -> None:
    assert error_code_of(message, info) == code


def test_a_rate_limit_can_have_a_waiting_time() -> None:
    assert failure_of("Rate limit reached. Please try again in 20s.").retry_after_ms == 20_000
    assert failure_of("Rate limit reached. Please try again in 120ms.").retry_after_ms == 120
    assert failure_of("You've hit your usage limit, try again at 10:26 PM.").retry_after_ms is None
    assert failure_of("bad thing, try again in 20s").retry_after_ms is None


def test_token_counts_belong_to_an_exceeded_context_only() -> None:
    assert failure_of("no", "contextWindowExceeded", used_tokens=5, max_tokens=4).used_tokens == 5
    assert failure_of("no", "unauthorized", used_tokens=5, max_tokens=4).used_tokens == 0


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("no rollout found for thread id x", "SESSION_NOT_FOUND"),
        ("invalid session id: x", "SESSION_NOT_FOUND"),
        ("401 Unauthorized", "AUTH_ERROR"),
        ("unknown variant `nonsense`", "AGENT_CRASH"),
    ],
)
def test_a_thread_that_cannot_be_opened_has_a_code(message: str, code: str) -> None:
    assert session_error_code_of(message) == code


def test_only_reconnecting_is_a_retry() -> None:
    assert read_retry("bad thing", None, None, nth=1) is None
    assert read_retry("Reconnecting... 2/5", "why", None, nth=1) == (facts.Retrying(2, 5, "why"),)
    assert read_retry("Reconnecting... 2/5 (why\nso)", None, None, nth=1) == (facts.Retrying(2, 5, "why\nso"),)
    assert read_retry("Reconnecting... 2/5", None, None, nth=1) == (facts.Retrying(2, 5, "Reconnecting... 2/5"),)
    waiting = read_retry("Reconnecting... waiting for network (down)", None, None, nth=3)
    assert waiting == (facts.Retrying(3, 0, "down"),)
    assert read_retry("Reconnecting... 99999999999999999999/5", None, None, nth=1) is None


def change(kind: str, diff: str = "", path: str = "/p/a", moved: str | None = None) -> CodexFileChange:
    return CodexFileChange(path, FileChangeKind(kind, moved), diff)


@pytest.mark.parametrize(
    ("given", "diff"),
    [
        (change("add", "one\ntwo\n"), "--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+one\n+two\n"),
        (change("add", ""), "--- /dev/null\n+++ b/a\n"),
        (change("add", "one"), "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+one\n\\ No newline at end of file\n"),
        (change("delete", "one\n"), "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"),
        (change("update", "@@ -1 +1 @@\n-a\n+b\n"), "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"),
        (change("update", "@@\n", path="/else/x"), "--- a/else/x\n+++ b/else/x\n@@\n"),
    ],
)
def test_a_change_is_shown_as_a_unified_diff(given: CodexFileChange, diff: str) -> None:
    assert unified_diff(given, "/p") == diff


def test_a_file_that_was_deleted_is_created_again() -> None:
    made: set[str] = set()
    kinds = [file_effects_of(change(kind, "x"), "/p", made) for kind in ("add", "add", "delete", "add", "evaporate")]
    assert kinds == [
        (facts.FileWritten("/p/a", 1, created=True),),
        (facts.FileWritten("/p/a", 1, created=False),),
        (facts.FileDeleted("/p/a"),),
        (facts.FileWritten("/p/a", 1, created=True),),
        (),
    ]


def test_bytes_are_counted_not_characters() -> None:
    [written] = file_effects_of(change("add", "é😀\n"), "/p", set())
    assert written == facts.FileWritten("/p/a", 7, created=True)


def test_a_counter_that_was_set_back_counts_the_last_call() -> None:
    counter = TokenCounter(None)
    last = CodexTokens(input_tokens=5)
    assert counter.advance(CodexTokens(input_tokens=100), last) == last
    assert counter.advance(CodexTokens(input_tokens=107), last) == CodexTokens(input_tokens=7)
    assert counter.advance(CodexTokens(input_tokens=20), last) == last
    assert TokenCounter(None).advance(CodexTokens(input_tokens=20), None) is None


def test_answers_find_their_requests_whatever_their_order() -> None:
    rpc = JsonRpcClient(with_version=True)
    assert rpc.request("one", {}) == b'{"jsonrpc":"2.0","id":1,"method":"one","params":{}}\n'
    rpc.request("two", {"a": 1})
    assert rpc.take_request(2) == PendingRequest("two", {"a": 1})
    assert rpc.take_request("1") is None  # the ids "1" and 1 differ
    assert rpc.take_request(1) == PendingRequest("one", {})
    assert rpc.take_request(1) is None


def test_an_error_is_read_whatever_it_looks_like() -> None:
    assert RpcError.read({"code": -32600, "message": "no"}) == RpcError(-32600, "no")
    assert RpcError.read({"code": True}) == RpcError(0, '{"code": true}')
    assert RpcError.read("no") == RpcError(0, "no")
    assert RpcError.read(None) == RpcError(0, "null")
