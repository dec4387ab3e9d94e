"""Checkpoints are the prompts of a session, and a rewind is refused where it would do something else."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.sessions.scripted_store import START, registry, sessions_in, write_session

from agent_mux import AgentMuxError, CapabilityError
from agent_mux.client.held_session import HeldSession
from agent_mux.sdk.installation import AgentInstallation
from agent_mux.sdk.session_changes import RewindOutcome, RewindRequest, SessionCommands, SessionSteps, StoredSessionRef
from agent_mux.sdk.sessions import FilesSaved, PromptSent, SessionEntry
from agent_mux.sessions.checkpoints import Checkpoint, Rewound, checkpoints_of, choose_checkpoint, resolve_scope
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.library import StoredSession
from agent_mux.sessions.names import NamedSessions
from agent_mux.sessions.tags import SessionTags

ENTRIES = (
    SessionEntry(START, PromptSent("first", "aa1")),
    SessionEntry(START + 1, PromptSent("second", "ab2")),
    SessionEntry(None, FilesSaved("ab2")),
)


class Reader:
    def read(self) -> "iter[SessionEntry]":  # type: ignore[valid-type]
        return iter(ENTRIES)


def _never(session: StoredSessionRef, request: RewindRequest) -> SessionSteps[RewindOutcome]:
    raise AssertionError((session, request))
    yield


def known_with(directory: Path, commands: SessionCommands) -> StoredSession:
    write_session(directory, "one", {"session": "one"}, {"prompt": "do one", "at": START})
    found = sessions_in(directory).find("one")
    adapter = replace(found.adapter, installation=lambda: AgentInstallation(sessions=commands))
    return found._replace(adapter=adapter)


def test_each_prompt_is_a_checkpoint_with_whether_files_can_be_restored(tmp_path: Path) -> None:
    known = known_with(tmp_path, SessionCommands(rewind=_never, scopes=("both", "conversation", "files")))
    assert checkpoints_of(known, Reader()) == (
        Checkpoint(id="aa1", turn=0, at=START, prompt="first"),
        Checkpoint(id="ab2", turn=1, at=START + 1, prompt="second", has_files=True),
    )


def test_an_agent_without_rewind_is_refused_with_its_reason_and_the_next_step(tmp_path: Path) -> None:
    known = known_with(tmp_path, SessionCommands(missing={"rewind": "only its terminal rewinds"}))
    with pytest.raises(CapabilityError, match="only its terminal rewinds; `amux sessions fork scripted:one PROMPT`"):
        checkpoints_of(known, Reader())


def test_the_scope_follows_what_the_agent_saved(tmp_path: Path) -> None:
    known = known_with(tmp_path, SessionCommands(rewind=_never, scopes=("both", "conversation", "files")))
    without, with_files = checkpoints_of(known, Reader())
    assert (resolve_scope(known, without, None), resolve_scope(known, with_files, None)) == ("conversation", "both")
    with pytest.raises(AgentMuxError, match="saved no files before prompt 1"):
        resolve_scope(known, without, "files")


def test_a_scope_that_the_agent_lacks_is_refused(tmp_path: Path) -> None:
    known = known_with(tmp_path, SessionCommands(rewind=_never))
    with pytest.raises(CapabilityError, match="rewinding only the files"):
        resolve_scope(known, Checkpoint(id="a", turn=0), "files")


def test_a_rewind_to_before_the_first_prompt_is_refused_by_agents_that_would_store_an_empty_session(
    tmp_path: Path,
) -> None:
    known = known_with(tmp_path, SessionCommands(rewind=_never, rewind_creates_session=True))
    first, second = checkpoints_of(known, Reader())
    with pytest.raises(CapabilityError, match="before the first prompt; it stores no session without a prompt"):
        resolve_scope(known, first, None)
    assert resolve_scope(known, second, None) == "conversation"


@pytest.mark.parametrize(
    ("wanted", "problem"), [("a", "several begin with"), ("c", "begins with"), ("", "begins with")]
)
def test_an_unclear_checkpoint_is_refused(tmp_path: Path, wanted: str, problem: str) -> None:
    known = known_with(tmp_path, SessionCommands(rewind=_never))
    with pytest.raises(AgentMuxError, match=problem):
        choose_checkpoint("scripted:one", wanted, checkpoints_of(known, Reader()))


def test_session_of_an_active_run_is_not_changed(tmp_path: Path) -> None:
    write_session(tmp_path, "one", {"session": "one"}, {"prompt": "do one", "at": START})
    sessions = sessions_in(tmp_path, tags=SessionTags(tmp_path))
    held = HeldSession("scripted", "RUN", tmp_path)
    held.hold("one")
    with pytest.raises(
        AgentMuxError, match=r"used by run RUN and cannot be deleted; .*`amux runs abort RUN`"
    ) as caught:
        sessions.delete("one")
    assert caught.value.code == "INVALID_STATE_TRANSITION"
    with pytest.raises(AgentMuxError, match="used by run RUN and cannot be renamed"):
        sessions.rename("one", "New")
    held.release()
    with pytest.raises(CapabilityError):  # the scripted agent has no command for it
        sessions.rename("one", "New")
    held.hold("one")  # it was released


def test_session_that_is_being_changed_is_not_continued(tmp_path: Path) -> None:
    held = HeldSession("scripted", "RUN", tmp_path)

    def rename(session: StoredSessionRef, title: str) -> SessionSteps[None]:
        with pytest.raises(AgentMuxError, match="in use or being changed; wait"):
            held.hold(session.native_id)
        yield from ()

    known = known_with(tmp_path, SessionCommands(rename=rename))
    adapters = registry()
    adapters.unregister("scripted")
    adapters.register(known.adapter)
    sessions = Sessions(adapters, environ={"HOME": str(tmp_path)}, tags=SessionTags(tmp_path))
    sessions.rename("one", "New")
    held.hold("one")


def test_the_names_of_a_session_follow_a_rewind_that_creates_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(tmp_path, "one", {"session": "one"}, {"prompt": "do one", "at": START})
    sessions = sessions_in(tmp_path, tags=SessionTags(tmp_path / "own", None))
    names = NamedSessions(tmp_path / "own")
    names.store("work", "scripted", tmp_path, "one")
    point = Checkpoint(id="aa1", turn=1)
    monkeypatch.setattr("agent_mux.sessions.client.checkpoints_of", lambda *_: (point,))
    created = Rewound(session="scripted:two", is_new=True, checkpoint=point)
    monkeypatch.setattr("agent_mux.sessions.client.rewind_to", lambda *_: created)
    assert sessions.rewind("one", "aa1") == created
    assert names.find("work", "scripted", tmp_path) == "two"
