"""What a command line would run."""

from typing import Any

import pytest

from agent_mux.sdk.shell_commands import begins_with, find_path_words, mentions, simple_commands


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("git status", [("git", "status")]),
        ("  ls   -la  ", [("ls", "-la")]),
        ("a 'b c' \"d e\"", [("a", "b c", "d e")]),
        ("a && b || c; d | e & f\ng", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",), ("g",)]),
        ("a;b", [("a",), ("b",)]),
        ("make test > /dev/null 2>&1", [("make", "test")]),
        ("make 2>/dev/null | head", [("make",), ("head",)]),
        ("echo '> file'", [("echo", "> file")]),
        ("", []),
    ],
)
def test_a_line_is_its_simple_commands(line: str, commands: list[tuple[str, ...]]) -> None:
    assert simple_commands(line) == commands


@pytest.mark.parametrize(
    "line",
    [
        "echo $(rm x)", "echo `rm x`", "echo $HOME", "(rm x)", "a > file", "a >> file", "a < file", "a 2> file",
        "a <(b)", "cat <<EOF\nrm x\nEOF", "a 'b", 'a "b', "a >&2 b >file", "a ;; b",
    ],
)  # fmt: skip
def test_what_could_be_anything_is_not_known(line: str) -> None:
    assert simple_commands(line) is None


def test_a_prefix_is_whole_words() -> None:
    assert begins_with(("git", "log", "-3"), ("git", "log"))
    assert not begins_with(("git", "logs"), ("git", "log"))
    assert not begins_with(("git",), ("git", "log"))
    assert not begins_with(("/tmp/git", "log"), ("git", "log"))


@pytest.mark.parametrize(
    "line",
    [
        "git push", "cd x && git push -f", "sudo git push", "bash -c 'git push'", "/usr/bin/git push",
        "echo $(git push)", "env A=1 git  push", "(git push)", "git\tpush", "x; git push",
    ],
)  # fmt: skip
def test_words_are_found_wherever_they_stand(line: str) -> None:
    assert mentions(line, ("git", "push"))


@pytest.mark.parametrize("line", ["git pull", "git pushed", "push git", "gitpush", ""])
def test_other_words_are_not_found(line: str) -> None:
    assert not mentions(line, ("git", "push"))


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("/bin/bash -lc 'git log; make'", [("git", "log"), ("make",)]),
        ("sh -c make && ls", [("make",), ("ls",)]),
        ("bash -c 'echo $(make)'", None),
        ("bash -c 'bash -c \"git log\"'", [("git", "log")]),
        ("bash script.sh", [("bash", "script.sh")]),
        ("bash -c make more", [("bash", "-c", "make", "more")]),
    ],
)
def test_a_shell_that_is_given_a_script_counts_as_the_script(line: str, commands: Any) -> None:
    assert simple_commands(line) == commands


def test_everything_may_be_the_name_of_a_file() -> None:
    assert find_path_words("cat --file=a.txt 'b c' < d") == ["cat", "--file", "a.txt", "b", "c", "d"]
