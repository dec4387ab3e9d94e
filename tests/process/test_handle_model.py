"""A run handle compared with a model of it: after any sequence of requests, both have the same state.

The scripted agent does one thing at a time: a `quick` prompt is answered at once, a `hold` lasts until it is steered or
interrupted, an `ask` waits for permission. The model receives the same requests and predicts their outcome.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import anyio
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.process.local_and_remote import CLIENT_KINDS, ScriptedServer
from tests.process.scripted import scripted_adapter

from agent_mux import AgentMuxError, BlockingAgentMux, BlockingRemoteMux, validate
from agent_mux.client.blocking import BlockingRun
from agent_mux.process.marker import processes_of
from agent_mux.run.environment import temp_dir_of
from agent_mux.run.runner import Runner
from agent_mux.sdk.registry import AdapterRegistry

PATIENCE = 60.0  # seconds
Prompt = Literal["quick", "hold", "ask"]
BODY = """
waiting = [read()]
def take():
    if waiting: return waiting.pop(0)
    return read()
emit(session='S')
asked = 0
while True:
    message = take()
    if message is None: break
    prompt = message.get('send', 'quick')
    if 'interrupt' in message or 'answer' in message: continue
    emit(text=prompt)
    if prompt == 'hold':
        while True:
            message = read()
            if message is None or message.get('send') == 'go': emit(done=True); break
            if 'interrupt' in message: emit(stopped=True); break
            waiting.append(message)
    elif prompt == 'ask':
        asked += 1
        emit(ask=f'r{asked}')
        while True:
            message = read()
            if message is None or 'answer' in message: emit(done=True); break
            if 'interrupt' in message: emit(stopped=True); break
            waiting.append(message)
    else: emit(done=True)
"""


@dataclass
class Model:
    """The expected state of the run."""

    turn: Prompt | None = None
    """The prompt that the agent works on."""
    waiting: list[Prompt] = field(default_factory=list)
    ended: int = 0
    """The number of turns that have ended."""
    paused: bool = False
    unread: list[str] = field(default_factory=list)
    """Messages sent while paused, in order: prompts, `go`, `answer`."""
    settled: bool = False
    """Whether the approval was answered and the agent has not read the answer yet."""
    interrupted: bool = False
    closed: bool = False
    over: str | None = None

    @property
    def state(self) -> str:
        if self.over is not None:
            return self.over
        return "paused" if self.paused else "running"

    @property
    def is_pending(self) -> bool:
        return self.turn == "ask" and not self.settled

    def receive(self, message: str) -> None:
        """Apply a message that the agent reads now, or once it is resumed."""
        if self.paused:
            self.unread.append(message)
            return
        match message:
            case "go" if self.turn == "hold":
                self._end()
            case "answer" if self.turn == "ask":
                self.settled = False
                self._end()
            case "interrupt" if self.turn is not None:
                self._end()
            case "quick" | "hold" | "ask":
                self.waiting.append(message)
                self._begin()
            case "go":
                self.waiting.append("quick")  # a message without a turn is a prompt
                self._begin()

    def close(self) -> None:
        """Let the agent finish its prompts and exit, unless it is paused."""
        self.closed = True
        if not self.paused:
            self.over = self.over or "completed"

    def resume(self) -> None:
        self.paused = False
        if self.closed:
            self.over = "completed"
        unread, self.unread = self.unread, []
        for message in unread:
            self.receive(message)

    def _end(self) -> None:
        self.turn = None
        self.ended += 1
        self._begin()

    def _begin(self) -> None:
        while self.turn is None and self.waiting:
            prompt = self.waiting.pop(0)
            if prompt == "quick":
                self.ended += 1
            else:
                self.turn = prompt


class HandleMachine(RuleBasedStateMachine):
    """A state machine that sends requests in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.mux = self.client()
        self.mux.__enter__()
        self.model = Model()
        self.run: BlockingRun

    def client(self) -> BlockingAgentMux | BlockingRemoteMux:
        self.folder = TemporaryDirectory()
        registry = AdapterRegistry()
        registry.register(scripted_adapter(BODY))
        directory = Path(self.folder.name) / "config"
        return BlockingAgentMux(adapters=registry, default_agent="scripted", config_dir=directory)

    @initialize()
    def start(self) -> None:
        self.run = self.mux.run(prompt="quick", interactive=True, grace_period=0.5)
        self.model.receive("quick")
        self.settle()

    def settle(self) -> None:
        """Wait until the agent has reached the state of the model."""

        async def wait() -> None:
            with anyio.fail_after(PATIENCE):
                while not self.agrees():  # noqa: ASYNC110  # two processes have to settle
                    await anyio.sleep(0.002)

        self.portal.call(wait)

    @property
    def portal(self) -> Any:
        return self.mux._loop  # the event loop of the run

    def agrees(self) -> bool:
        handle = self.run._run
        runner = self.runner()
        ended = runner.core.normalizer.assembler.turns_ended
        pending = len(handle.interaction.pending)
        busy = runner.core.normalizer.assembler.in_turn
        model = self.model
        if model.over is not None:
            return handle.state == model.over and runner.core.done.is_set()
        return (
            ended == model.ended
            and pending == model.is_pending
            and busy == (model.turn is not None)
            and (model.paused or handle.state in {"running", "interrupted"})
        )

    def runner(self) -> Runner:
        return self.run._run._runner  # accessed inside the event loop of the run

    @contextmanager
    def expecting(self, code: str | None) -> Iterator[None]:
        if code is None:
            yield
            return
        with pytest.raises(AgentMuxError) as caught:
            yield
        assert caught.value.code == code

    def input_error_code(self) -> str | None:
        if self.model.over is not None:
            return "RUN_NOT_ACTIVE"
        return "STDIN_NOT_AVAILABLE" if self.model.closed else None

    # -- requests

    @rule(prompt=st.sampled_from(["quick", "hold", "ask"]), queued=st.booleans())
    def prompt(self, prompt: Prompt, queued: bool) -> None:
        code = self.input_error_code()
        with self.expecting(code):
            given = self.run.queue(prompt) if queued else self.run.send(prompt)
            waits = self.model.turn is not None or self.model.paused
            assert given == ("queued" if waits else "applied")
        if code is None:
            self.model.receive(prompt)
            self.settle()

    @precondition(lambda self: self.model.turn != "ask" and not self.model.unread)
    @rule()
    def steer(self) -> None:
        code = self.input_error_code()
        is_busy, is_paused = self.model.turn is not None, self.model.paused
        with self.expecting(code):
            assert self.run.steer("go") == ("merged" if is_busy else "queued" if is_paused else "applied")
        if code is None:
            self.model.receive("go")
            self.settle()

    @rule(allow=st.booleans())
    def decide(self, allow: bool) -> None:
        code = self.input_error_code()
        if code != "RUN_NOT_ACTIVE" and not self.model.is_pending:
            code = "NO_PENDING_INTERACTION"
        with self.expecting(code):
            assert (self.run.approve() if allow else self.run.deny("no")) == (
                "queued" if self.model.paused else "applied"
            )
        if code is None:
            self.model.settled = True
            self.model.receive("answer")
            self.settle()

    @precondition(lambda self: not self.model.closed)
    @rule()
    def interrupt(self) -> None:
        model = self.model
        code = "RUN_NOT_ACTIVE" if model.over else "INVALID_STATE_TRANSITION" if model.paused else None
        with self.expecting(code):
            assert self.run.interrupt() == ("applied" if model.turn is not None else "unneeded")
        if code is None:
            model.receive("interrupt")
            self.settle()
            if model.turn is None and self.run.state == "interrupted":
                assert self.run.interrupt() == "unneeded"
                self.run.send("quick")  # so that the run is running again
                model.receive("quick")
                self.settle()

    @rule()
    def pause(self) -> None:
        model = self.model
        code = "RUN_NOT_ACTIVE" if model.over else "INVALID_STATE_TRANSITION" if model.paused else None
        with self.expecting(code):
            assert self.run.pause() == "applied"
        if code is None:
            model.paused = True

    @rule()
    def resume(self) -> None:
        model = self.model
        code = "RUN_NOT_ACTIVE" if model.over else None if model.paused else "INVALID_STATE_TRANSITION"
        with self.expecting(code):
            assert self.run.resume() == "applied"
        if code is None:
            model.resume()
            self.settle()

    @precondition(lambda self: self.model.ended > 1)
    @rule()
    def close(self) -> None:
        with self.expecting("RUN_NOT_ACTIVE" if self.model.over else None):
            assert self.run.close() == ("unneeded" if self.model.closed else "applied")
        self.model.close()
        self.settle()

    @precondition(lambda self: self.model.ended > 2)
    @rule()
    def abort(self) -> None:
        assert self.run.abort() == ("unneeded" if self.model.over else "applied")
        self.model.over = self.model.over or "aborted"
        self.settle()

    # -- invariants

    @invariant()
    def state_equals_that_of_the_model(self) -> None:
        if hasattr(self, "run"):
            assert self.run.state == self.model.state

    def teardown(self) -> None:
        if hasattr(self, "run"):
            self.run.abort()
            assert validate(list(self.run)) == []
            assert self.run.result().ledger.unknown == {}
            assert processes_of(self.run.run_id) == []
            assert not temp_dir_of(self.run.run_id).exists()
        self.mux.__exit__(None, None, None)
        self.tidy_up()

    def tidy_up(self) -> None:
        self.folder.cleanup()


class RemoteHandleMachine(HandleMachine):
    """The same for a remote run: its handle and the service agree with the model."""

    server: ScriptedServer

    def client(self) -> BlockingRemoteMux:
        return BlockingRemoteMux(self.server.server.url, default_agent="scripted")

    def runner(self) -> Runner:
        # The run belongs to another thread, which is idle or soon will be.
        live = self.server.server.service.runs.find(self.run.run_id)
        assert live is not None
        return live.handle._runner

    def tidy_up(self) -> None:
        """Keep the shared server."""


@pytest.mark.slow
@pytest.mark.parametrize("place", CLIENT_KINDS)
def test_handle_state_matches_the_model(place: str, shared_server: ScriptedServer) -> None:
    shared_server.client(BODY)
    RemoteHandleMachine.server = shared_server
    run_state_machine_as_test(
        HandleMachine if place == "local" else RemoteHandleMachine,
        settings=settings(
            max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
