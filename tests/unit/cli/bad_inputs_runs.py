"""Bad input for `amux runs`: arguments, exit code, message."""

Case = tuple[list[object], int, str]
ID = "01KAN5D5Q8W9S4H4D1V7T2X3YZ"
NO_RUN = "no run has an id that begins with 'nothing'"
NONE_RECORDED = "no run is recorded in"
_WITH_RUN = ("answer", "steer", "queue", "interrupt", "abort")
_WITH_TEXT = ("answer", "steer", "queue")


def cases_of(command: str) -> list[Case]:
    """Return the cases of a command that names a run."""
    text: list[object] = ["yes"] if command in _WITH_TEXT else []
    named: list[Case] = [
        (["runs", command, "nothing", *text], 20, NO_RUN),
        (["runs", command, ID, *text], 20, f"no run has an id that begins with '{ID}'"),
        (["runs", command, "nothing", *text, "more"], 2, "unexpected extra argument"),
    ]
    if command in _WITH_RUN:
        named.append((["runs", command], 2, "Missing argument 'RUN'"))
    else:
        named.append((["runs", command], 20, NONE_RECORDED))
    return named


CASES: list[Case] = [
    (["runs", "list", "--state", "busy"], 2, "--state expects one of alive, over"),
    (["runs", "list", "--limit", "-1"], 2, "Invalid value for '--limit'"),
    (["runs", "list", "--server", "nowhere"], 2, "nowhere"),
    *(case for command in ("show", "watch", "diff", *_WITH_RUN) for case in cases_of(command)),
    (["runs", "prune"], 2, "give --older-than, --keep or --max-size"),
    (["runs", "prune", "--older-than", "soon"], 2, "--older-than"),
    (["runs", "prune", "--max-size", "inf"], 2, "'inf' is not a size; give a number of MB"),
    (["runs", "list", "--server", "\udcff"], 2, "url: got"),
    (["runs", "list", "--config-dir", "a" * 5000], 7, "File name too long: "),
    (["runs", "prune", "--keep", "-1"], 2, "Invalid value for '--keep'"),
    (["run", "claude", "hi", "--detach", "--interactive"], 2, "--detach cannot be combined with --interactive"),
]
