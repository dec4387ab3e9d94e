"""Tables of commands."""

import pytest
from tests.unit.cli.conftest import Amux

from agent_mux.cli import command_output
from agent_mux.cli.command_output import Invocation, print_result, print_rows

RUN = "01M8DNB762538DP337KMARQQZ8"


@pytest.mark.parametrize("columns", [60, 80])
def test_id_in_the_first_column_is_not_broken(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_output, "width_of", lambda _: columns)
    place = "/home/me/" + "project/" * 8
    rows = [{"run": RUN, "agent": "claude", "state": "running", "cost": 0.5, "directory": place, "prompt": "fix " * 20}]
    print_rows(rows, ["run", "agent", "state", "cost", "directory", "prompt"], Invocation())
    printed = capsys.readouterr().out
    assert RUN in printed
    assert "0.5000" in printed
    assert printed.count("fix") == 20
    assert max(map(len, printed.splitlines())) <= columns


@pytest.mark.parametrize(
    ("variables", "is_bold"), [({}, False), ({"FORCE_COLOR": "1"}, True), ({"NO_COLOR": "1"}, False)]
)
def test_table_has_the_colors_of_other_output(
    variables: dict[str, str], is_bold: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    print_rows([{"run": RUN}], ["run"], Invocation())
    assert ("\x1b[1m" in capsys.readouterr().out) is is_bold
    print_rows([{"run": RUN}], ["run"], Invocation(no_color=True))
    assert "\x1b" not in capsys.readouterr().out


def test_lines_of_tables_are_ascii_where_the_terminal_cannot_encode_them(amux: Amux) -> None:
    amux("adapters", "list")  # prepares the streams
    assert "│ ─── é…".encode("ascii", "similar") == b"| --- ?~"


def test_row_is_a_list_of_fields_where_the_table_would_break_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("provider", "context", "output", "features", "aliases", "released")
    rows = [{"model": "claude-fable-5-1", **dict.fromkeys(names, "anthropic, thinking"), "released": None}]
    monkeypatch.setattr(command_output, "width_of", lambda _: 40)
    print_rows(rows, ["model", *names], Invocation())
    title, *fields = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert title == "claude-fable-5-1"
    assert fields == [f"  {name:<8}  anthropic, thinking" for name in names[:-1]]
    monkeypatch.setattr(command_output, "width_of", lambda _: 200)
    print_rows(rows, ["model", *names], Invocation())
    assert capsys.readouterr().out.splitlines()[-2].split() == ["claude-fable-5-1", *["anthropic,", "thinking"] * 5]


def test_paths_in_results_are_below_the_home_directory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    print_result(Invocation(), "saved review in /home/me/.agent-mux/profiles/review.json", {})
    assert capsys.readouterr().err == "saved review in ~/.agent-mux/profiles/review.json\n"
    print_result(Invocation(json=True), "", {"path": "/home/me/x"})
    assert "/home/me/x" in capsys.readouterr().out
