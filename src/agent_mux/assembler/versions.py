"""The version of the agent's program: from before the start, or as the agent reports it."""

from msgspec.structs import replace

from agent_mux.assembler.emitter import Emitter, StreamContext
from agent_mux.assembler.outcome import Verdict
from agent_mux.events.run import DebugEvent
from agent_mux.sdk import facts
from agent_mux.sdk.versions import describe_state, is_older, state_of


class VersionAssembler:
    """Stores the version, reports once that it is not tested, and names it in errors of the program."""

    def __init__(self, emitter: Emitter, context: StreamContext) -> None:
        self._emitter = emitter
        self._context = context
        self._is_session_announced = False
        self._is_reported = False
        self.version = context.agent_version
        """The version; None until it is known."""

    def follow(self, context: StreamContext) -> None:
        """Use the settings of the next attempt, of which another program may be the agent."""
        if context.agent != self._context.agent:
            self.version, self._is_reported = context.agent_version, False
        self._context = context
        if self._is_session_announced:
            self._report()

    @property
    def _tested(self) -> tuple[str, ...]:
        return self._context.tested_versions

    @property
    def _program(self) -> str:
        return self._context.display_name or self._context.agent

    @property
    def program(self) -> str:
        """The program for error messages, with its version if that is known."""
        return self._program if self.version is None else f"{self._program} {self.version}"

    def learn(self, fact: facts.AgentVersion) -> None:
        """Store the version that the agent reports, which is more reliable than what was known before the start."""
        self.version = fact.version or self.version
        if self._is_session_announced:
            self._report()

    def session_announced(self) -> None:
        """Report the state of the version, now or as soon as the agent reports the version."""
        self._is_session_announced = True
        self._report()

    def explain(self, verdict: Verdict) -> Verdict:
        """Add to an error of the program that its version is outside of the tested range, and the next step."""
        failure, version = verdict.failure, self.version
        if failure is None or failure.code != "AGENT_CRASH" or version is None or not self._tested:
            return verdict
        # A newer version is likely to be the cause only where its output was not understood.
        is_suspect = is_older(version, self._tested) or verdict.exit_reason in {"crashed", "truncated"}
        if not is_suspect or state_of(version, self._tested) != "unknown":
            return verdict
        hint = describe_state("version", version, self._tested, agent=self._context.agent)
        return replace(verdict, failure=replace(failure, message=f"{failure.message} ({hint})"))

    def _report(self) -> None:
        if self._is_reported or self.version is None or not self._tested:
            return
        self._is_reported = True
        state = state_of(self.version, self._tested)
        if state != "tested":
            level = "verbose" if state == "in_range" else "warn" if is_older(self.version, self._tested) else "info"
            message = describe_state(self._program, self.version, self._tested, agent=self._context.agent)
            self._emitter.emit(DebugEvent, level, message)
