"""The script of `make demo` reacts to the results of its tools and reports only observed facts."""

import anyio
import pytest
from tests.unit.embedded.providers.harness import ask, converse

from agent_loop.errors import ProviderError
from agent_loop.messages import AssistantMessage
from agent_loop.providers.scripted_provider import ScriptedProvider

RED = "F\n=====\nFAIL: test_add (test_calculator.AddTest)\n-----\nRan 2 tests in 0.001s\n\nFAILED (failures=1)\n"
BROKEN = "E\n=====\nERROR: test_calculator\n-----\nRan 1 test in 0.001s\n\nFAILED (errors=1)\n"
GREEN = "..\n-----\nRan 2 tests in 0.001s\n\nOK\n"
PLAIN = "def add(a, b):\n    return a - b\n"
NUMBERED = "     1\tdef add(a: int, b: int) -> int:\n     2\t    return a - b\n     3\t\n     4\tdef sub(a, b):\n"
WITH_DOC = '1: """Sums."""\n3: def add(a, b):\n4:     """The sum."""\n5:     return a - b\n'


def _run(*results: str) -> list[AssistantMessage]:
    return anyio.run(converse, ScriptedProvider.from_name("demo"), "Mend the tests", results)


def _edit(answers: list[AssistantMessage]) -> dict[str, str]:
    return next(call.arguments for message in answers for call in message.tool_calls if call.name == "edit")


def test_demo_fixes_the_bug_that_its_failing_test_shows() -> None:
    answers = _run("calculator.py\ntest_calculator.py", RED, PLAIN, "ok", GREEN)
    calls = [(call.name, call.arguments) for message in answers for call in message.tool_calls]
    assert [name for name, _ in calls] == ["ls", "shell", "read_file", "edit", "shell"]
    assert calls[1][1] == calls[4][1] == {"command": "python -B -m unittest"}
    assert calls[3][1] == {
        "path": "calculator.py",
        "old_string": "def add(a, b):\n    return a - b",
        "new_string": "def add(a, b):\n    return a + b",
    }
    assert "Tests that pass now: 2" in answers[-1].text


@pytest.mark.parametrize(
    ("listing", "old", "new"),
    [
        (
            NUMBERED,
            "def add(a: int, b: int) -> int:\n    return a - b",
            "def add(a: int, b: int) -> int:\n    return a + b",
        ),
        (WITH_DOC, '    """The sum."""\n    return a - b', '    """The sum."""\n    return a + b'),
    ],
)
def test_the_demo_reads_listings_with_line_numbers_and_docstrings(listing: str, old: str, new: str) -> None:
    edit = _edit(_run("", RED, listing, "ok", GREEN))
    assert (edit["old_string"], edit["new_string"]) == (old, new)


@pytest.mark.parametrize(
    ("results", "claim"),
    [
        (["", GREEN], "Tests that pass: 2, and none fails. I changed nothing."),
        (["", "Error: denied by the user"], "Its last line: Error: denied by the user"),
        (["", ""], "The tests printed nothing, so I changed nothing."),
        (["", RED, "def add(a, b):\n    return a + b\n"], "the tests still fail, and I changed nothing"),
        (["", RED, PLAIN, "Error: old_string was not found", RED], "but tests still fail: 1"),
        (["", BROKEN, "def add(a, b):\n    return a + b\n"], "the tests still fail, and I changed nothing"),
        (["", "Ran 0 tests in 0.000s\n\nNO TESTS RAN"], "Its last line: NO TESTS RAN"),
        (["", "Ran 0 tests in 0.000s\n\nOK"], "Its last line: OK"),
        (["", RED, PLAIN, "ok", BROKEN], "but tests still fail: 1"),
        (["", RED, PLAIN, "ok", "Error: timeout"], "the tests reported no result"),
    ],
)
def test_demo_reports_what_it_could_not_do(results: list[str], claim: str) -> None:
    assert claim in _run(*results)[-1].text


def test_a_second_task_is_an_error() -> None:
    provider = ScriptedProvider.from_name("demo")
    anyio.run(converse, provider, "Mend the tests", ["", GREEN])
    for _ in range(2):
        with pytest.raises(ProviderError, match="it is over; choose a model with --model") as caught:
            anyio.run(ask, provider, "Now something else")
        assert not caught.value.retryable


@pytest.mark.parametrize("hostile", ["1" * 200_000, "x" * 200_000, " " * 200_000, "a \n" * 60_000, "def add(" * 30_000])
def test_the_demo_is_not_kept_busy_by_hostile_output(hostile: str) -> None:
    assert "I changed nothing" in _run("", f"{hostile}\n")[-1].text
    assert "I changed nothing" in _run("", RED, hostile)[-1].text
