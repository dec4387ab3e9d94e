"""All torture cases by name."""

from collections.abc import Iterable

from agent_mux.run.handle import RunHandle
from agent_mux.testing.torture.agent import MIB, line
from agent_mux.testing.torture.case import Case
from agent_mux.testing.torture.killed_client import KilledClient
from agent_mux.testing.torture.run_case import RunCase

GRACE = 0.5  # seconds from SIGTERM to SIGKILL
SMALL_WRITES = 64
SHORT_LINE = 4  # MiB; the longest line of a short torture
WRITE_SIZE = 1 << 16  # bytes; all writes together exceed the capacity of a pipe by far


def size_itself(size: int) -> int:
    """Return the size: one line for each unit."""
    return size


def nothing(_: int) -> int:
    """Return 0: the agent prints no line."""
    return 0


async def abort_after_first_text(run: RunHandle) -> None:
    """Abort as soon as the agent has printed text."""
    await _first_text(run)
    await run.abort()


async def send_much(run: RunHandle) -> None:
    """Send more than a pipe holds, as soon as the agent has printed text."""
    await _first_text(run)
    for _ in range(SMALL_WRITES):
        if not run._runner.state.is_over:  # noqa: SLF001  # the agent may exit at any time
            await run.send("x" * WRITE_SIZE)


async def send_much_and_abort(run: RunHandle) -> None:
    """Send more than a pipe holds, then abort."""
    await send_much(run)
    await run.abort()


async def pause_and_abort(run: RunHandle) -> None:
    """Pause the agent, then abort it."""
    await _first_text(run)
    await run.pause()
    await run.abort()


async def _first_text(run: RunHandle) -> None:
    async for event in run:
        if event.type == "text_delta":
            return


def _long_line(mebibytes: int) -> RunCase:
    return RunCase(
        name=f"line-{mebibytes}-mib",
        meaning=f"one line of {mebibytes} MiB arrives whole",
        behaviour="long-line",
        verdict="completed",
        sizes=(min(mebibytes, SHORT_LINE), mebibytes),
        characters=lambda size: size * MIB + len("0 "),
        peak_mib=200 + 12 * mebibytes,
        bound=60,
    )


_SPLIT = len(line(0, "aé日😀 ß")) - 1

_RUNS = (
    _long_line(2),
    _long_line(20),
    _long_line(64),
    RunCase(
        name="split-utf8",
        meaning="a line that is cut at every byte, characters included, arrives whole",
        verdict="completed",
        lines=lambda _: _SPLIT,
    ),
    RunCase(
        name="invalid-bytes",
        meaning="invalid UTF-8, unpaired surrogates and NUL do not affect the run",
        verdict="completed",
        lines=lambda _: 4,
    ),
    RunCase(
        name="no-final-newline",
        meaning="a closing message without a newline counts",
        verdict="completed",
    ),
    RunCase(
        name="noise",
        meaning="banners, colours, progress bars and blank lines between the lines do not count as lines",
        verdict="completed",
        lines=lambda _: 20,
    ),
    RunCase(
        name="unknown-types",
        meaning="unknown JSON is reported and does not affect the run",
        verdict="completed",
        lines=lambda _: 7,
        events=("debug",),
    ),
    RunCase(
        name="crash-in-line",
        meaning="an exit in the middle of a line is a crash; earlier lines are kept",
        verdict="crashed",
        events=("crash",),
    ),
    RunCase(
        name="no-result",
        meaning="exit code 0 without a closing message is not a success",
        verdict="truncated",
    ),
    RunCase(
        name="two-results",
        meaning="a second closing message does not break the event contract",
        verdict="completed",
        lines=lambda _: 2,
    ),
    RunCase(
        name="holder",
        meaning="a grandchild that keeps stdout open for 60 s does not delay the end of the run",
        verdict="completed",
    ),
    RunCase(
        name="clean-holder",
        meaning="as holder; the grandchild has no environment, no parent, its own session, and ignores signals",
        verdict="completed",
    ),
    RunCase(
        name="stubborn",
        meaning="an agent that ignores SIGTERM and SIGINT is killed after the grace period, with its child",
        verdict="aborted",
        meanwhile=abort_after_first_text,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="double-fork",
        meaning="daemons without the run's session, parent or environment end with the run",
        verdict="completed",
    ),
    RunCase(
        name="daemons-and-work",
        meaning="daemons end after an abort, too",
        verdict="aborted",
        meanwhile=abort_after_first_text,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="burst",
        meaning="50 child processes of every kind end with the run",
        verdict="completed",
        sizes=(6, 50),
    ),
    RunCase(
        name="stderr-flood",
        meaning="100 MB on stderr do not block the agent, and are not kept in memory",
        verdict="completed",
        sizes=(4, 100),
        lines=size_itself,
        at_terminal=False,
        peak_mib=150,
        bound=120,
    ),
    RunCase(
        name="event-flood",
        meaning="a million events, faster than they are read: none is lost, and memory is bounded",
        verdict="completed",
        sizes=(20_000, 1_000_000),
        lines=size_itself,
        reads_slowly=True,
        peak_mib=200,
        bound=300,
    ),
    RunCase(
        name="silence",
        meaning="an agent without output ends after the inactivity timeout",
        verdict="inactivity",
        lines=nothing,
        options={"inactivity_timeout": 0.5, "grace_period": GRACE},
    ),
    RunCase(
        name="flood-then-silence",
        meaning="an agent that falls silent after much output ends after the inactivity timeout",
        verdict="inactivity",
        sizes=(2_000, 20_000),
        lines=size_itself,
        options={"inactivity_timeout": 0.5, "grace_period": GRACE},
    ),
    RunCase(
        name="deaf",
        meaning="an agent that never reads stdin does not block the sender",
        verdict="completed",
        lines=lambda _: 2,
        meanwhile=send_much,
    ),
    RunCase(
        name="deaf-for-ever",
        meaning="an agent that never reads stdin can be aborted while its pipe is full",
        verdict="aborted",
        meanwhile=send_much_and_abort,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="hangs-up",
        meaning="sending to an agent that has closed its stdin does not fail, and the run completes",
        verdict="completed",
        lines=lambda _: 2,
        meanwhile=send_much,
    ),
    RunCase(
        name="asks-and-dies",
        meaning="an approval request of an agent that died is denied before the run ends",
        verdict="killed",
        events=("approval_request", "approval_denied", "crash"),
    ),
    RunCase(
        name="stopped",
        meaning="an agent that stopped itself (SIGSTOP) can be aborted",
        verdict="aborted",
        meanwhile=abort_after_first_text,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="stopped-time-out",
        meaning="an agent that stopped itself (SIGSTOP) ends after the timeout",
        behaviour="stopped",
        verdict="timeout",
        options={"timeout": 1.0, "grace_period": GRACE},
    ),
    RunCase(
        name="paused",
        meaning="a paused agent can be aborted, with its child processes",
        behaviour="stubborn",
        verdict="aborted",
        meanwhile=pause_and_abort,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="clock-jumps",
        meaning="a wall clock that jumps by days ends no run, and event times never go back",
        behaviour="split-utf8",
        verdict="completed",
        lines=lambda _: _SPLIT,
        clock_jumps=True,
        options={"timeout": 15.0, "inactivity_timeout": 10.0},
    ),
)


_KILLED = (
    KilledClient(
        name="kill-client",
        meaning="nothing survives a client that is killed (SIGKILL) at any point, daemons included",
        kind="daemons",
        sizes=(1, 50),
    ),
    KilledClient(
        name="kill-writer",
        meaning="a journal whose writer is killed can be read to its last whole record",
        kind="writers",
        sizes=(1, 10),
    ),
)


def _by_name(cases: Iterable[Case]) -> dict[str, Case]:
    return {case.name: case for case in cases}


CASES: dict[str, Case] = _by_name((*_RUNS, *_KILLED))
"""All cases by name, in the order of the table."""
