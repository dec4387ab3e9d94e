"""Repair of Copilot's diffs, and the typed decoder of fragments."""

import pytest
from copilot_transcript import new_codec
from tests.unit.adapters.codec_conversation import PROJECT, receive

from agent_mux.sdk import facts
from agent_mux_adapters.copilot import tool_results

PATH = f"{PROJECT}/a.txt"


def shown(*lines: str, path: str = PATH, old: str | None = None) -> str:
    before = path.lstrip("/") if old is None else old
    return "\n".join([f"\ndiff --git a{path} b{path}", f"--- a/{before}", f"+++ b{path}", *lines, ""])


@pytest.mark.parametrize(
    ("hunk", "mended"),
    [
        # The hunk reaches the end of the file: the empty line after it is not part of the file.
        (("@@ -1,3 +1,3 @@", "-one", "+1", " two", " "), ("@@ -1,2 +1,2 @@", "-one", "+1", " two")),
        # The file does not end with a newline.
        (("@@ -1,1 +1,1 @@", "-x", "+y"),
         ("@@ -1,1 +1,1 @@", "-x", "\\ No newline at end of file", "+y", "\\ No newline at end of file")),
        # Three lines of context: the file may continue.
        (("@@ -1,4 +1,4 @@", "-1", "+one", " 2", " 3", " 4"), ("@@ -1,4 +1,4 @@", "-1", "+one", " 2", " 3", " 4")),
        (("@@ -1,4 +1,4 @@", "-1", "+one", " 2", " 3", " "), ("@@ -1,3 +1,3 @@", "-1", "+one", " 2", " 3")),
        # A hunk further down in the file.
        (("@@ -9,3 +9,3 @@", " eight", "-nine", "+9", " "), ("@@ -9,2 +9,2 @@", " eight", "-nine", "+9")),
        # No changes, or not a hunk.
        (("@@ -1,2 +1,2 @@", " one", " "), ()),
        (("@@ odd @@", " one"), ("@@ odd @@", " one")),
    ],
)  # fmt: skip
def test_hunks_at_the_end_of_a_file(hunk: tuple[str, ...], mended: tuple[str, ...]) -> None:
    [section] = tool_results.file_diffs(shown(*hunk))
    assert section.hunks == list(mended)
    assert (section.path, section.created) == (PATH, False)


def test_the_files_of_a_diff() -> None:
    both = shown("@@ -1,0 +1,2 @@", "+one", "+", path="/new", old="dev/null") + shown("@@ -1,1 +1,1 @@", "-x", "+y")
    made, changed = tool_results.file_diffs(both)
    assert (made.path, made.created, made.added) == ("/new", True, "one\n")
    assert (changed.path, changed.created, changed.added) == (PATH, False, "y")
    assert tool_results.diff_of_file(both, PATH).startswith(f"--- a{PATH}\n+++ b{PATH}\n@@ ")
    assert tool_results.diff_of_file(both, "/other") == ""
    assert list(tool_results.file_diffs("\ndiff --git nothing more")) == []


def test_fragments_are_decoded_by_their_type() -> None:
    line = b'{"type":"assistant.message_delta","data":{"messageId":"m","deltaContent":"Hi"}}'
    wrapped = b'{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":"s","event":%b}}'
    assert receive(new_codec("json"), line) == [facts.TextDelta("Hi")]
    assert receive(new_codec(), wrapped % line) == [facts.TextDelta("Hi")]
    bytes_so_far = b'{"type":"assistant.streaming_delta","data":{"totalResponseSizeBytes":7}}'
    of_nothing = b'{"type":"assistant.tool_call_delta","data":{"toolName":"bash","inputDelta":"{"}}'
    for line in (bytes_so_far, of_nothing):
        assert all(isinstance(step, facts.Ignored) for step in receive(new_codec("json"), line))
    called = b'{"type":"assistant.tool_call_delta","data":{"toolCallId":"c","toolName":"bash","inputDelta":"{"}}'
    assert receive(new_codec("json"), called) == [facts.ToolBegin("c", "bash"), facts.ToolInput("c", "{")]


@pytest.mark.parametrize("odd", [b'{"messageId":null,"deltaContent":"Hi"}', b'{"deltaContent":"Hi","messageId":5}'])
def test_fragments_of_another_shape_are_read_all_the_same(odd: bytes) -> None:
    line = b'{"type":"assistant.message_delta","data":%b}' % odd
    wrapped = b'{"method":"session.event","params":{"sessionId":"s","event":%b}}' % line
    assert receive(new_codec("json"), line) == [facts.TextDelta("Hi")]
    assert receive(new_codec(), wrapped) == [facts.TextDelta("Hi")]
