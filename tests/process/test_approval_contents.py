"""What an approval request shows: the input of the tool and the diff, in the event, the detail, and derived again."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.local_and_remote import LocalOnly, local_only
from tests.process.scripted import MakeClient, ScriptedCodec

from agent_mux import PendingInteraction, encode_event, validate
from agent_mux.assembler.shown_requests import MAX_DIFF
from agent_mux.run.derivation import derive_events
from agent_mux.sdk.interactions import ApprovalDetail

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]

EDIT = {"path": "a.txt", "old_string": "line 3\n", "new_string": "LINE 3\n"}
DIFF = "--- a/a.txt\n+++ b/a.txt\n@@ -1,5 +1,5 @@\n line 1\n line 2\n-line 3\n+LINE 3\n line 4\n line 5\n"


def asking(*edits: dict[str, Any], after: str = "") -> str:
    """Return an agent that asks about edits, one after the other; the lines after a request are in the same write."""
    requests = "".join(
        f"sys.stdout.write(json.dumps({{'edit': {edit!r}}}) + chr(10) + {after!r}); sys.stdout.flush(); read()\n"
        for edit in edits
    )
    return f"read()\n{requests}emit(text='over'); emit(done=True); drain()"


async def collect(make_client: MakeClient, body: str, cwd: Path) -> tuple[list[Any], list[ApprovalDetail], Any]:
    details: list[ApprovalDetail] = []

    def decide(pending: PendingInteraction) -> bool:
        assert isinstance(pending.detail, ApprovalDetail)
        details.append(pending.detail)
        return True

    with anyio.fail_after(20):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi", cwd=str(cwd), on_approval_request=decide)
            events = [event async for event in run]
            assert validate(events) == []
            return events, details, await run


def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 6)))
    return directory


async def test_event_and_detail_have_the_input_and_the_diff_against_the_file(
    make_client: MakeClient, tmp_path: Path
) -> None:
    events, (detail,), result = await collect(make_client, asking(EDIT), work(tmp_path))
    (request,) = [event for event in events if event.type == "approval_request"]
    assert (detail.diff, detail.tool_input, detail.paths, detail.tool_call_id) == (DIFF, EDIT, ("a.txt",), "edit")
    assert (request.diff, request.tool_input, request.paths, request.tool_call_id) == (DIFF, EDIT, ["a.txt"], "edit")
    assert result.text == "over"


async def test_output_after_the_request_follows_it(make_client: MakeClient, tmp_path: Path) -> None:
    body = asking(EDIT, after='{"text": "meanwhile"}\n')
    events, (detail,), result = await collect(make_client, body, work(tmp_path))
    types = [event.type for event in events]
    assert detail.diff == DIFF
    assert types.index("approval_request") < types.index("text_delta")
    assert result.text == "meanwhileover"


async def test_large_new_file_is_cut_with_a_mark(make_client: MakeClient, tmp_path: Path) -> None:
    edit = {"path": "new.txt", "content": "x" * 50 + "\n"}
    body = asking(edit).replace(repr(edit["content"]), repr(edit["content"]) + " * 20_000")
    _, (detail,), _ = await collect(make_client, body, work(tmp_path))
    assert detail.diff is not None
    assert len(detail.diff) <= MAX_DIFF
    assert detail.diff.endswith(" more lines are not shown\n")
    assert "more characters" in detail.tool_input["content"]


@local_only(LocalOnly.NOTES)
async def test_derived_events_are_identical_although_the_file_has_changed(
    make_client: MakeClient, tmp_path: Path
) -> None:
    directory = work(tmp_path)
    second = {"path": "a.txt", "content": "all\n"}
    events, details, result = await collect(make_client, asking(EDIT, second), directory)
    assert details[0].diff == DIFF
    assert details[1].diff is not None
    assert details[1].diff.endswith("-line 5\n+all\n")
    (directory / "a.txt").unlink()
    derived = list(derive_events(Path(result.journal), ScriptedCodec))
    assert [encode_event(event) for event in derived] == [encode_event(event) for event in events]
