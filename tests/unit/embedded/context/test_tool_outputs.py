"""Tail strategy, stale reads and the budget of tool output, on given histories."""

import subprocess
import sys

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.context import elide_old_outputs, elide_stale_reads, over_output_budget, turn_output_bytes
from agent_loop.messages import AssistantMessage, Image, Text, ToolCall, ToolMessage, UserMessage, user
from agent_loop.tools.results import output_bytes

from .histories import call, lawful_histories, model_text, result, tokens, working
from .history_rules import assert_valid_history


def texts(messages) -> list[str]:
    return [each.text for each in messages if isinstance(each, ToolMessage)]


def test_compact_strategy_tail_keeps_outputs_below_the_threshold() -> None:
    history = working(10, "x" * 100)
    assert elide_old_outputs(history, threshold=1_000, keep_turns=1) == history


def test_compact_strategy_tail_stubs_results_older_than_compact_keep_turns() -> None:
    history = working(10, "x" * 201)
    kept = elide_old_outputs(history, threshold=1_000, keep_turns=4)
    assert texts(kept) == ["[Output left out: 201 bytes. Call the tool again if you need it.]"] * 6 + ["x" * 201] * 4
    assert [each for each in kept if not isinstance(each, ToolMessage)] == [
        each for each in history if not isinstance(each, ToolMessage)
    ]
    assert texts(history) == ["x" * 201] * 10


def test_compact_strategy_tail_passes_text_and_images_of_users() -> None:
    seen = UserMessage(content=(Image("i" * 9_000, "image/png"), Text("what is this?")))
    history = [seen, *working(3, "x" * 500)[1:]]
    kept = elide_old_outputs(history, threshold=1_000, keep_turns=0)
    assert kept[0] is seen
    assert all("500 bytes" in text for text in texts(kept))


def test_a_turn_of_several_messages_and_parallel_calls_is_one_turn() -> None:
    both = AssistantMessage(content=(ToolCall("1", "look"), ToolCall("2", "look")))
    last = [model_text("I look"), both, result("1", "a" * 200), result("2", "b" * 200)]
    kept = elide_old_outputs([*working(1, "x" * 200), *last], threshold=1, keep_turns=1)
    assert kept[-4:] == last
    assert "200 bytes" in kept[2].text


@given(lawful_histories(), st.integers(0, 500), st.integers(0, 5))
def test_tail_strategy_result_is_valid_smaller_and_stable(history, threshold, turns) -> None:
    kept = elide_old_outputs(history, threshold=threshold, keep_turns=turns)
    assert_valid_history(kept)
    assert tokens(kept) <= tokens(history)
    assert elide_old_outputs(kept, threshold=threshold, keep_turns=turns) == kept


CONTENT = "def main(): ...\n" * 20


def reading(number: int, path: str, tool: str = "read_file", **known) -> list:
    return [call(f"r{number}", tool, path=path), result(f"r{number}", CONTENT, tool, **known)]


def test_elide_stale_reads_stubs_older_reads_of_files_that_were_changed_since() -> None:
    history = [user("x"), *reading(1, "a.py"), *reading(2, "b.py"), *reading(3, "./a.py", "edit"), *reading(4, "a.py")]
    kept = elide_stale_reads(history)
    stub = "[Older content of 'a.py': the file was changed since. Read it again if you need it.]"
    assert texts(kept) == [stub, CONTENT, CONTENT, CONTENT]
    assert_valid_history(kept)


def test_elide_stale_reads_knows_all_tools_that_write() -> None:
    for tool in ("write_file", "edit", "multi_edit"):
        assert "Older content" in texts(elide_stale_reads([*reading(1, "a"), *reading(2, "a", tool)]))[0]
    assert texts(elide_stale_reads([*reading(1, "a"), *reading(2, "a", "grep")]))[0] == CONTENT


def test_elide_stale_reads_knows_the_files_of_a_patch() -> None:
    patch = "*** Begin Patch\n*** Update File: b\n-x\n+y\n*** Delete File: a\n*** End Patch"
    *_, call, result = reading(2, "a", "apply_patch")
    assert isinstance(call, AssistantMessage)
    patched = msgspec.structs.replace(call.tool_calls[0], arguments={"patch": patch})
    history = [*reading(1, "a"), msgspec.structs.replace(call, content=(patched,)), result]
    assert "Older content" in texts(elide_stale_reads(history))[0]
    cut = msgspec.structs.replace(patched, arguments={"patch": "*** Begin Patch"})
    history = [*reading(1, "a"), msgspec.structs.replace(call, content=(cut,)), result]
    assert texts(elide_stale_reads(history))[0] == CONTENT


def test_elide_stale_reads_leaves_reads_before_a_write_that_failed() -> None:
    history = [*reading(1, "a.py"), *reading(2, "a.py", "edit", is_error=True)]
    assert elide_stale_reads(history) == history


def test_elide_stale_reads_accepts_invalid_arguments() -> None:
    history = [
        call("1", "read_file", path=7),
        result("1", CONTENT),
        call("2", "edit", _raw="{"),
        result("2", CONTENT),
        result("none", CONTENT),
    ]
    assert elide_stale_reads(history) == history


def test_elide_stale_reads_can_know_two_names_of_one_file() -> None:
    history = [*reading(1, "/work/a.py"), *reading(2, "a.py", "edit")]
    assert elide_stale_reads(history) == history
    assert "Older" in texts(elide_stale_reads(history, resolve=lambda path: path.removeprefix("/work/")))[0]


def test_output_bytes_are_utf8_bytes_of_text_and_base64_characters_of_images() -> None:
    assert output_bytes((Text("añ\ud800"), Image("aGk=", "image/png"))) == 6 + 4
    assert turn_output_bytes([result("1", "abc"), result("2", "de")]) == 5


def test_tool_output_budget_appends_a_synthetic_user_message() -> None:
    results = [result("1", "x" * 60), result("2", "x" * 41)]
    assert over_output_budget(results, 101) is None
    assert over_output_budget(results, None) is None
    message = over_output_budget(results, 100)
    assert message is not None
    assert message.origin == "budget"
    assert message.text == (
        "[Tool output budget exceeded: 101 bytes returned in this turn (cap: 100). "
        "Summarize the salient findings before calling more tools.]"
    )


def test_importing_the_reduction_of_outputs_loads_no_tools() -> None:
    heavy = {"pydantic", "agent_loop.tools.builtin"}
    code = f"import sys, agent_loop.context.tool_outputs; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
