"""The cases, by name. Each says what the agent does and what must be true then."""

from collections.abc import Iterable

from agent_mux.run.handle import RunHandle
from agent_mux.testing.torture.agent import MIB, line
from agent_mux.testing.torture.case import Case, RunCase
from agent_mux.testing.torture.killed import KilledClient

GRACE = 0.5  # seconds that an agent gets to leave
SMALL_WRITES = 64
SHORTER = 4  # MiB of a line, at most, where it is to be quick
WRITE_SIZE = 1 << 16  # bytes: together far more than a pipe holds


def size_itself(size: int) -> int:
    """As many lines as the size says."""
    return size


def nothing(_: int) -> int:
    """No line."""
    return 0


async def abort_after_a_word(run: RunHandle) -> None:
    """Abort as soon as the agent works."""
    await _word(run)
    await run.abort()


async def send_much(run: RunHandle) -> None:
    """More than a pipe holds, as soon as the agent works."""
    await _word(run)
    for _ in range(SMALL_WRITES):
        if not run._runner.state.is_over:  # noqa: SLF001  # the agent may leave meanwhile, as it likes
            await run.send("x" * WRITE_SIZE)


async def send_much_and_abort(run: RunHandle) -> None:
    """As above; then it is enough."""
    await send_much(run)
    await run.abort()


async def pause_and_abort(run: RunHandle) -> None:
    """Stop the agent, and then end it."""
    await _word(run)
    await run.pause()
    await run.abort()


async def _word(run: RunHandle) -> None:
    async for event in run:
        if event.type == "text_delta":
            return


def _long_line(mebibytes: int) -> RunCase:
    return RunCase(
        name=f"line-{mebibytes}-mib",
        meaning=f"one line of {mebibytes} MiB arrives whole",
        behaviour="long-line",
        verdict="completed",
        sizes=(min(mebibytes, SHORTER), mebibytes),
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
        said=lambda _: _SPLIT,
    ),
    RunCase(
        name="invalid-bytes",
        meaning="bytes that are no UTF-8, lone surrogates and NUL harm nothing",
        verdict="completed",
        said=lambda _: 4,
    ),
    RunCase(
        name="no-final-newline",
        meaning="a closing message without a newline counts",
        verdict="completed",
    ),
    RunCase(
        name="noise",
        meaning="banners, colours, progress bars and blank lines between the lines are no lines",
        verdict="completed",
        said=lambda _: 20,
    ),
    RunCase(
        name="unknown-types",
        meaning="what nobody has heard of is shown and harms nothing",
        verdict="completed",
        said=lambda _: 7,
        events=("debug",),
    ),
    RunCase(
        name="crash-in-line",
        meaning="death in the middle of a line is a crash; what was said before is there",
        verdict="crashed",
        events=("crash",),
    ),
    RunCase(
        name="no-result",
        meaning="exit code 0 without a closing message is no success",
        verdict="truncated",
    ),
    RunCase(
        name="two-results",
        meaning="a second closing message breaks no law",
        verdict="completed",
        said=lambda _: 2,
    ),
    RunCase(
        name="holder",
        meaning="a grandchild that keeps standard output for 60 s does not keep the run",
        verdict="completed",
    ),
    RunCase(
        name="clean-holder",
        meaning="as holder; it has no environment, no parent, a session of its own, and ignores signals",
        verdict="completed",
    ),
    RunCase(
        name="stubborn",
        meaning="an agent that ignores SIGTERM and SIGINT is ended when its grace is over, with its child",
        verdict="aborted",
        meanwhile=abort_after_a_word,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="double-fork",
        meaning="daemons that left session, parent and environment are ended with the run",
        verdict="completed",
    ),
    RunCase(
        name="daemons-and-work",
        meaning="the same after an abort",
        verdict="aborted",
        meanwhile=abort_after_a_word,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="burst",
        meaning="50 children at once, of every kind, are all ended",
        verdict="completed",
        sizes=(6, 50),
    ),
    RunCase(
        name="stderr-flood",
        meaning="100 MB of standard error do not stop the agent, and stay out of memory",
        verdict="completed",
        sizes=(4, 100),
        said=size_itself,
        at_terminal=False,
        peak_mib=150,
        bound=120,
    ),
    RunCase(
        name="event-flood",
        meaning="a million events, faster than they are read: none is lost, and memory is bounded",
        verdict="completed",
        sizes=(20_000, 1_000_000),
        said=size_itself,
        reads_slowly=True,
        peak_mib=200,
        bound=300,
    ),
    RunCase(
        name="silence",
        meaning="an agent that says nothing is ended for it",
        verdict="inactivity",
        said=nothing,
        options={"inactivity_timeout": 0.5, "grace_period": GRACE},
    ),
    RunCase(
        name="flood-then-silence",
        meaning="so is one that said much before",
        verdict="inactivity",
        sizes=(2_000, 20_000),
        said=size_itself,
        options={"inactivity_timeout": 0.5, "grace_period": GRACE},
    ),
    RunCase(
        name="deaf",
        meaning="an agent that never reads what it is sent does not stop who sends",
        verdict="completed",
        said=lambda _: 2,
        meanwhile=send_much,
    ),
    RunCase(
        name="deaf-for-ever",
        meaning="it can be aborted with its pipe full",
        verdict="aborted",
        meanwhile=send_much_and_abort,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="hangs-up",
        meaning="an agent that closes its standard input can still be sent to, and completes",
        verdict="completed",
        said=lambda _: 2,
        meanwhile=send_much,
    ),
    RunCase(
        name="asks-and-dies",
        meaning="an approval whose asker died is denied, before the run is over",
        verdict="killed",
        events=("approval_request", "approval_denied", "crash"),
    ),
    RunCase(
        name="stopped",
        meaning="an agent that stopped itself (SIGSTOP) can be aborted",
        verdict="aborted",
        meanwhile=abort_after_a_word,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="stopped-time-out",
        meaning="and its time runs out",
        behaviour="stopped",
        verdict="timeout",
        options={"timeout": 1.0, "grace_period": GRACE},
    ),
    RunCase(
        name="paused",
        meaning="an agent that we stopped can be aborted, its children included",
        behaviour="stubborn",
        verdict="aborted",
        meanwhile=pause_and_abort,
        options={"grace_period": GRACE},
    ),
    RunCase(
        name="clock-jumps",
        meaning="a wall clock that leaps by days ends nothing, and no time in the events goes back",
        behaviour="split-utf8",
        verdict="completed",
        said=lambda _: _SPLIT,
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
"""All cases, in the order of the table."""
