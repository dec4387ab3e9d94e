"""All torture cases by name."""

from collections.abc import Iterable

from agent_mux.errors import AgentMuxError
from agent_mux.run.handle import RunHandle
from agent_mux_testing.torture.agent import MIB, line
from agent_mux_testing.torture.case import Case
from agent_mux_testing.torture.killed_client import KilledClient
from agent_mux_testing.torture.run_case import RunCase

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
        try:
            await run.send("x" * WRITE_SIZE)
        except AgentMuxError as error:
            if error.code != "RUN_NOT_ACTIVE":  # the agent may exit at any time
                raise
            return


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
        meaning=f"one line of {mebibytes} MiB arrives complete",
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
        meaning="a line that is split at every byte, also within characters, arrives complete",
        verdict="completed",
        lines=lambda _: _SPLIT,
    ),
    RunCase(
        name="invalid-bytes",
        meaning="invalid UTF-8, unpaired surrogates and NUL do not disturb the run",
        verdict="completed",
        lines=lambda _: 4,
    ),
    RunCase(
        name="no-final-newline",
        meaning="a closing message without a newline is accepted",
        verdict="completed",
    ),
    RunCase(
        name="noise",
        meaning="banners, colours, progress bars and blank lines between the lines are ignored",
        verdict="completed",
        lines=lambda _: 20,
    ),
    RunCase(
        name="unknown-types",
        meaning="unknown message types are reported and do not disturb the run",
        verdict="completed",
        lines=lambda _: 7,
        events=("debug",),
    ),
    RunCase(
        name="crash-in-line",
        meaning="an exit in the middle of a line is a crash; earlier output is kept",
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
        meaning="a second closing message does not violate the contract",
        verdict="completed",
        lines=lambda _: 2,
    ),
    RunCase(
        name="holder",
        meaning="a grandchild that holds standard output open for 60 s does not delay the run",
        verdict="completed",
    ),
    RunCase(
        name="clean-holder",
        meaning="as holder, with an empty environment, no parent, its own session, and ignored signals",
        verdict="completed",
    ),
    RunCase(
        name="stubborn",
        meaning="an agent that ignores SIGTERM and SIGINT is killed after its grace period, with its child",
        verdict="aborted",
        meanwhile=abort_after_first_text,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="double-fork",
        meaning="daemons without the session, parent and environment of the run are ended with it",
        verdict="completed",
    ),
    RunCase(
        name="daemons-and-work",
        meaning="the same after an abort",
        verdict="aborted",
        meanwhile=abort_after_first_text,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="burst",
        meaning="50 concurrent children of every kind are all ended",
        verdict="completed",
        sizes=(6, 50),
    ),
    RunCase(
        name="stderr-flood",
        meaning="100 MB of standard error do not block the agent and are not kept in memory",
        verdict="completed",
        sizes=(4, 100),
        lines=size_itself,
        at_terminal=False,
        peak_mib=150,
        bound=120,
    ),
    RunCase(
        name="event-flood",
        meaning="a million events, emitted faster than they are read: none is lost, memory is bounded",
        verdict="completed",
        sizes=(20_000, 1_000_000),
        lines=size_itself,
        reads_slowly=True,
        peak_mib=200,
        bound=300,
    ),
    RunCase(
        name="silence",
        meaning="a silent agent is ended by the inactivity timeout",
        verdict="inactivity",
        lines=nothing,
        options={"inactivity_timeout": 3.0, "grace_period": GRACE},
    ),
    RunCase(
        name="flood-then-silence",
        meaning="so is an agent that is silent after much output",
        verdict="inactivity",
        sizes=(2_000, 20_000),
        lines=size_itself,
        options={"inactivity_timeout": 3.0, "grace_period": GRACE},
    ),
    RunCase(
        name="deaf",
        meaning="an agent that never reads its input does not block the sender",
        verdict="completed",
        lines=lambda _: 2,
        meanwhile=send_much,
    ),
    RunCase(
        name="deaf-for-ever",
        meaning="it can be aborted while its input pipe is full",
        verdict="aborted",
        meanwhile=send_much_and_abort,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="hangs-up",
        meaning="an agent that closes its standard input does not fail the sender, and completes",
        verdict="completed",
        lines=lambda _: 2,
        meanwhile=send_much,
    ),
    RunCase(
        name="asks-and-dies",
        meaning="an open approval of an agent that exits is denied before the run ends",
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
        meaning="its timeout still applies",
        behaviour="stopped",
        verdict="timeout",
        options={"timeout": 1.0, "grace_period": GRACE},
    ),
    RunCase(
        name="paused",
        meaning="a paused agent can be aborted, its children included",
        behaviour="stubborn",
        verdict="aborted",
        meanwhile=pause_and_abort,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="clock-jumps",
        meaning="a wall clock that jumps by days ends nothing, and event times do not decrease",
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
        meaning="no process survives a client that is killed (SIGKILL) at any point, daemons included",
        kind="daemons",
        sizes=(1, 50),
    ),
    KilledClient(
        name="kill-writer",
        meaning="a journal whose writer is killed can be read up to its last complete record",
        kind="writers",
        sizes=(1, 10),
    ),
)


def _by_name(cases: Iterable[Case]) -> dict[str, Case]:
    return {case.name: case for case in cases}


CASES: dict[str, Case] = _by_name((*_RUNS, *_KILLED))
"""All cases by name, in the order of the table."""
