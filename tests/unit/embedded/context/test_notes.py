"""Todos, decisions and requests that outlive every compaction."""

import anyio
import pytest
from tests.unit.embedded.context.histories import call, model_text, result
from tests.unit.embedded.context.history_rules import assert_valid_history

from agent_loop.behavior import ContextSettings
from agent_loop.context.manager import ContextManager
from agent_loop.context.notes import KeptNotes, notes_in, parse_notes
from agent_loop.context.summaries import parse_stand_in, stand_in_message
from agent_loop.messages import Message, UserMessage, user

TURNS = 500
TASK = "Port the parser to Rust without changing its output."


def todo(number: int, status: str = "pending") -> dict[str, str]:
    return {"id": f"t{number}", "title": f"port module {number}", "status": status}


def written(name: str, todos: list[dict[str, str]], *decisions: str, is_error: bool = False) -> list[Message]:
    return [
        call(name, "write_todos", todos=todos, decisions=list(decisions)),
        result(name, "Todos: 1", "write_todos", is_error=is_error),
    ]


def texts_of(view: tuple[Message, ...]) -> str:
    return "\n".join(each.text for each in view if isinstance(each, UserMessage)) + "".join(
        str(block.arguments) for each in view for block in getattr(each, "tool_calls", ())
    )


async def forgetful(_: object) -> str:
    return "Some work was done."


async def failing(_: object) -> str:
    raise RuntimeError("the model is unavailable")


@pytest.mark.anyio
@pytest.mark.parametrize("summarize", [forgetful, failing, None])
async def test_session_of_500_turns_keeps_task_decisions_and_open_todos(summarize) -> None:
    """The summaries contain none of them, and each is stated once only."""
    settings = ContextSettings(max_context_tokens=6_000, system_prompt_tokens=0)
    manager = ContextManager(settings, summarize=summarize)
    history: list[Message] = [user(TASK)]
    decisions: list[str] = []
    todos = [todo(number) for number in range(8)]
    compactions = 0
    for turn in range(TURNS):
        history += [call(f"c{turn}", "shell", command=f"make {turn}"), result(f"c{turn}", "line\n" * 60)]
        if turn % 50 == 10:
            decisions.append(f"decision {turn // 50}: use crate number {turn}")
            todos = [{**each, "status": "done"} if each["id"] == f"t{turn // 100}" else each for each in todos]
            history += written(f"w{turn}", todos, decisions[-1])
        with anyio.fail_after(60):
            fitted = await manager.fit(history)
        compactions += fitted.compaction is not None
        assert_valid_history(fitted.messages)
        shown = texts_of(fitted.messages)
        assert TASK in shown
        assert [each for each in decisions if each not in shown] == []
        if turn > 10:
            missing = [each["title"] for each in todos if each["status"] != "done" and each["title"] not in shown]
            assert missing == []
    assert compactions > 5


def test_notes_are_those_of_the_last_list_and_of_all_decisions() -> None:
    omitted = [
        *written("a", [todo(1), todo(2, "done")], "first"),
        *written("b", [todo(3, "in_progress")], "second", "first"),
        *written("c", [todo(9)], "refused", is_error=True),
    ]
    assert notes_in(omitted, []) == KeptNotes(("t3 (in_progress): port module 3",), ("first", "second"))
    later = written("d", [])
    assert notes_in(omitted, later) == KeptNotes((), ("first", "second"))


def test_notes_of_earlier_compactions_are_carried_on() -> None:
    notes = KeptNotes(("t1 (pending): one",), ("use tabs",))
    message = stand_in_message("Summary.", "the request", 1_000, notes)
    assert parse_stand_in(message) == ("Summary.", "the request")
    assert notes_in([message, *written("a", [todo(2)], "use spaces")], []) == KeptNotes(
        ("t2 (pending): port module 2",), ("use tabs", "use spaces")
    )
    assert notes_in([message], [model_text("x")]) == notes


@pytest.mark.parametrize(
    "notes", [KeptNotes(), KeptNotes(("a",)), KeptNotes((), ("b", "c")), KeptNotes(("a",), ("b",))]
)
def test_rendered_notes_are_parsed_again(notes: KeptNotes) -> None:
    assert parse_notes("before" + notes.render()) == ("before", notes)


def test_arguments_that_are_no_todos_are_ignored() -> None:
    wrong = [call("a", "write_todos", todos="x", decisions={"a": 1}), result("a", "ok", "write_todos")]
    assert notes_in(wrong, []) == KeptNotes()


def test_notes_outlive_the_summary_and_the_request_if_little_space_is_left() -> None:
    notes = KeptNotes(("t1 (pending): one",))
    message = stand_in_message("Summary. " * 200, "request " * 200, 120, notes)
    assert "t1 (pending): one" in message.text
    assert "request request" not in message.text
