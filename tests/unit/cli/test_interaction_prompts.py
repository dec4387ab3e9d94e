"""Approvals at a terminal: the diff or the input, folded past a screenful, and safe to print."""

import re
from typing import Any

import pytest
from rich.cells import cell_len

from agent_mux.cli.interaction_prompts import asks_for_whole, describe_request, parse_answer, prompt_for
from agent_mux.cli.terminal import Palette, TerminalSize
from agent_mux.sdk.interactions import ApprovalDetail, InputDetail, PendingInteraction

PLAIN = Palette(enabled=False)
HEADER = "--- a/a.txt\n+++ b/a.txt\n"


def approval(**fields: Any) -> PendingInteraction:
    given = {"action": "Edit a file", "detail": "/w/a.txt", "tool_name": "Edit", "risk_level": "medium", **fields}
    return PendingInteraction("i", "approval", "r", "Edit a file: /w/a.txt", ApprovalDetail(**given), 1)


def shown(pending: PendingInteraction, columns: int = 80, rows: int = 24, **options: Any) -> list[str]:
    return describe_request(pending, PLAIN, TerminalSize(columns, rows), **options).text.splitlines()


def test_edit_shows_its_diff() -> None:
    pending = approval(diff=f"{HEADER}@@ -1,2 +1,2 @@\n a\n-b\n+c\n", tool_input={"old_string": "b"})
    assert shown(pending) == [
        "permission needed (medium risk): Edit a file",
        "    /w/a.txt", "    --- a/a.txt", "    +++ b/a.txt", "    @@ -1,2 +1,2 @@", "     a", "    -b", "    +c",
    ]  # fmt: skip
    assert prompt_for(pending) == "[y]es / [n]o / [a]lways? "


def test_diff_in_the_detail_is_not_repeated() -> None:
    diff = f"{HEADER}@@ -1,1 +1,1 @@\n-b\n+c\n"
    assert "\n".join(shown(approval(detail=diff, diff=diff))).count("+c") == 1


def test_command_and_the_rest_of_its_input_are_shown() -> None:
    pending = approval(
        action="Run", detail="make", command="make", tool_input={"command": "make", "cwd": "/x", "env": {"A": "1"}}
    )
    assert shown(pending)[1:] == ["    make", "    cwd: /x", '    env: {"A": "1"}']


def test_input_is_shown_for_people_instead_of_json() -> None:
    pending = approval(detail='{"title":"T","body":"x\\ny"}', tool_input={"title": "T", "body": "x\ny"})
    assert shown(pending)[1:] == ["    title: T", "    body:", "      x", "      y"]


@pytest.mark.parametrize(("columns", "rows"), [(60, 24), (80, 24), (60, 6), (200, 50)])
def test_long_diff_is_folded_to_a_screen_and_v_shows_all(columns: int, rows: int) -> None:
    lines = [f"+{number} 你好 {'x' * number}" for number in range(100)]
    pending = approval(diff=HEADER + "@@ -0,0 +1,100 @@\n" + "\n".join(lines) + "\n")
    folded = describe_request(pending, PLAIN, TerminalSize(columns, rows))
    assert folded.is_folded
    assert folded.text.count("\n") < max(rows, 7)
    assert re.search(r"\.\.\. \d+ more lines; v shows all\n\Z", folded.text)
    assert all(cell_len(line) < columns for line in folded.text.splitlines())
    assert "[v]iew all" in prompt_for(pending, is_folded=True)
    assert asks_for_whole(pending, " V ")
    assert parse_answer(pending, "v") is None
    whole = describe_request(pending, PLAIN, TerminalSize(columns, rows), whole=True)
    assert not whole.is_folded
    assert whole.text.count("+") >= 100
    assert all(cell_len(line) < columns for line in whole.text.splitlines())


def test_a_wrapped_line_does_not_look_like_another_line_of_the_diff() -> None:
    hidden = "+" + " " * 54 + "-harmless"
    rows = shown(approval(diff=f"{HEADER}@@ -0,0 +1,1 @@\n{hidden}\n"), columns=60)
    assert rows[-1].startswith("    | ")


@pytest.mark.parametrize(
    "character", ["\x1b", "\x07", "\r", "\x08", "\x9b", "\u202e", "\u2066", "\u200b", "\ufeff", "\U000e0041"]
)
@pytest.mark.parametrize("place", ["action", "detail", "command", "diff", "name", "value"])
def test_invisible_characters_are_shown_or_removed(character: str, place: str) -> None:
    evil = f"a{character}[2Jb"
    fields: dict[str, Any] = {
        "action": {"action": evil},
        "detail": {"detail": evil},
        "command": {"command": evil},
        "diff": {"diff": f"{HEADER}@@ -1 +1 @@\n-{evil}\n"},
        "name": {"tool_input": {evil: "x"}},
        "value": {"tool_input": {"x": [evil]}},
    }[place]
    text = describe_request(approval(**fields), PLAIN, TerminalSize(60, 24)).text
    if place == "action" and character in {"\u200b", "\U000e0041"}:
        return  # without an effect on the terminal
    assert character not in text


def test_options_are_shown_with_their_descriptions_and_wrapped() -> None:
    context = "Style\nShort: A summary of what changed in one sentence\nLong: x"
    detail = InputDetail("Which style do you want for the description?", context, ("Short", "Long", "None"), "tool")
    pending = PendingInteraction("i", "input", "r", "?", detail, 1)
    assert shown(pending, columns=44) == [
        "question: Which style do you want for the",
        "          description?",
        "    Style",
        "  1. Short",
        "     A summary of what changed in one",
        "     sentence",
        "  2. Long",
        "     x",
        "  3. None",
    ]
    assert prompt_for(pending) == "number or text> "


def test_v_answers_a_question() -> None:
    pending = PendingInteraction("i", "input", "r", "?", InputDetail("Which?", None, (), "agent"), 1)
    assert not asks_for_whole(pending, "v")
