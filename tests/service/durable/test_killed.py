"""`kill -9` at any moment, again and again: nothing that was seen is lost, and nothing is done twice.

`make durability` (AMUX_DURABILITY=full) does it 20 times on each database; the slow tests, three times.
"""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.service.durable.processes import Reader, ServerProcess, events_of, kill, nothing_lives, until

from agent_mux import validate
from agent_mux.process.marker import PREFIX
from agent_mux.run.base import TERMINAL_STATES

FULL = os.environ.get("AMUX_DURABILITY") == "full"
ROUNDS = 20 if FULL else 3
RUNS_A_ROUND, AT_A_TIME = 5, 3
SEED = int(os.environ.get("AMUX_DURABILITY_SEED", "6"))

AGENT = """
import random
run = next(name for name in os.environ if name.startswith("AGENT_MUX_RUN_"))
with open({starts!r}, "a") as starts: starts.write(run + "\\n")
subprocess.Popen(["sleep", "1000"], start_new_session=True)
read(); emit(session=run)
with open(run, "w") as made: made.write("a file that git finds")
chance = random.Random(run)
for number in range(chance.choice([3, 40, 400])):
    emit(text=f"{{number}} "); emit(ran=f"tool {{number}}")
    time.sleep(0.005)
emit(over=True); emit(done=True); drain()
"""


class History:
    """What was seen from outside."""

    def __init__(self) -> None:
        self.known: list[str] = []
        self.seen: dict[str, dict[int, bytes]] = {}
        self.over: dict[str, tuple[dict[str, Any], dict[int, bytes]]] = {}
        """Ended runs: their view and all their messages."""

    def note(self, reader: Reader) -> None:
        """What a reader saw before the server was killed."""
        self.compare(reader.run_id, reader.seen)
        longest = self.seen.setdefault(reader.run_id, {})
        longest.update(reader.seen)

    def compare(self, run_id: str, messages: dict[int, bytes]) -> None:
        """The same number is the same event, byte for byte. A result has the number behind the last event."""
        before = self.seen.get(run_id, {})
        for number in before.keys() & messages.keys():
            assert before[number] == messages[number], f"event {number} of {run_id} is another one now"

    def check(self, server: ServerProcess) -> None:
        """After a restart."""
        listed = {run["runId"]: run for run in server.runs()}
        assert set(self.known) <= set(listed)
        assert nothing_lives([run_id for run_id in self.seen if self.seen[run_id]]), "what had begun is still at work"
        for run_id in listed:
            shown = server.run(run_id)
            if shown["state"] not in TERMINAL_STATES:
                assert not self.seen.get(run_id), f"{run_id} had begun, and is {shown['state']}"
                continue
            self._check_end(run_id, shown, server.stream(run_id))

    def _check_end(self, run_id: str, shown: dict[str, Any], messages: dict[int, bytes]) -> None:
        assert self.seen.get(run_id, {}).keys() <= messages.keys(), f"events of {run_id} are lost"
        self.compare(run_id, messages)
        events = events_of(messages)
        assert validate(events) == []
        assert (len(events), Counter(event["type"] for event in events)) == (shown["eventCount"], shown["eventTypes"])
        assert shown["state"] in {"lost", "completed"}
        shown = {name: value for name, value in shown.items() if name != "revision"}  # of a run that ended just now
        if run_id in self.over:
            before, messages_before = self.over[run_id]
            assert shown == before
            assert messages == messages_before
        self.over[run_id] = (shown, messages)


def begin(server: ServerProcess, history: History, repository: Path) -> list[Reader]:
    """More runs, and somebody who watches each that is not over."""
    history.known += [server.create(cwd=str(repository)) for _ in range(RUNS_A_ROUND)]
    return [server.watch(run["runId"]) for run in server.runs(state="alive")]


@pytest.mark.slow
def test_whatever_was_seen_is_there_after_any_number_of_kills(tmp_path: Path, database_url: str) -> None:
    starts, repository = tmp_path / "starts", tmp_path / "repository"
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)  # so that results have changed files
    body = AGENT.format(starts=str(starts))
    chance, history = random.Random(SEED), History()  # noqa: S311  # a seed, so that it can be done again
    chosen = {"max_concurrent_runs": AT_A_TIME, "database": database_url, "roots": [str(repository)]}
    for number in range(ROUNDS):
        server = ServerProcess(tmp_path / "config", body, **chosen)
        with server:
            history.check(server)
            readers = begin(server, history, repository)
            time.sleep(chance.uniform(0, 1.5))  # the moment at which it happens
            if number % 3 == 2:
                kill(server.reapers())  # then nobody ends the runs until the server is back
        for reader in readers:
            history.note(reader)
        if number % 3 != 2:
            until(lambda: nothing_lives(history.known), 10)
    with ServerProcess(tmp_path / "config", body, **chosen) as server:
        history.check(server)
        until(lambda: not server.runs(state="alive"))
        history.check(server)
        history.check(server)
        assert set(history.over) >= set(history.known)
        begun = Counter(line.removeprefix(PREFIX) for line in starts.read_text().split())
        assert set(begun.values()) == {1}, "a run began twice"
        assert set(begun) <= set(history.over)
        silent = set(history.over) - set(begun)  # killed between their journals and the first breath of their agents
        assert {history.over[run_id][0]["state"] for run_id in silent} <= {"lost"}
        states = Counter(shown["state"] for shown, _ in history.over.values())
        assert states["lost"] >= ROUNDS // 2
        assert states["completed"] >= ROUNDS // 2
        server.end(signal.SIGTERM)
    until(lambda: nothing_lives(list(history.over)), 10)
