"""Puts the agent together: model, tools, middleware, session, hooks. The one place that knows all of them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from agent_loop.agent import Agent
from agent_loop.cli.approvals import Approvals, Asker
from agent_loop.cli.budget import Budget
from agent_loop.cli.commands import Start
from agent_loop.cli.fault import Fault
from agent_loop.cli.models import model_of
from agent_loop.cli.places import SIGN, sessions_directory, skills_directories
from agent_loop.cli.settings import behavior_of, limits_of, not_honoured, system_prompt_of
from agent_loop.cli.stream import ApprovalMode, Clock, EventStream, Sink, context_of
from agent_loop.hooks import Hooks, Middleware
from agent_loop.messages import UserMessage
from agent_loop.middleware.memory import MemoryMiddleware
from agent_loop.middleware.skills import SkillsMiddleware, load_skills
from agent_loop.middleware.todos import TodoListMiddleware
from agent_loop.providers import Provider
from agent_loop.providers.registry import provider_named
from agent_loop.sessions.file_store import FileSessionStore
from agent_loop.sessions.ids import new_id
from agent_loop.sessions.resume import fork, resume
from agent_loop.sessions.session import Session
from agent_loop.tools.builtin import ShellTool, default_tools
from agent_loop.workspace import Workspace
from agent_mux import facts

AGENT_ID = "amux-agent"
AGENTS_DOC = "AGENTS.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where the program runs."""

    environ: Mapping[str, str]
    directory: Path
    run_id: str
    now: Clock
    sink: Sink
    asker: Asker | None = None
    base_url: str | None = None


@dataclass(frozen=True, slots=True)
class Assembled:
    """An agent, and what its program is made of."""

    agent: Agent
    stream: EventStream
    approvals: Approvals
    budget: Budget


async def assemble(start: Start, here: Surroundings) -> Assembled:
    """All of it. Raises `Fault` and `AgentLoopError` for what cannot be."""
    provider = provider_named(model_of(start, here.environ), base_url=here.base_url, environ=here.environ)
    store = None if start.no_session else FileSessionStore(sessions_directory(here.environ))
    session = await _session(start, store, here)
    stream = stream_of(start, here, provider)
    approvals = Approvals(stream, mode_of(start), asks_everything=start.asks_everything, asker=here.asker)
    docs = _agents_docs(start, here.directory)
    skills = [*skills_directories(here.environ, here.directory), *(here.directory / one for one in start.skills)]
    readable = [here.directory / one for one in start.readable]
    hooks = Hooks()
    agent = Agent(
        provider,
        tools=default_tools(ShellTool(variables={SIGN: "1"})),
        system_prompt=system_prompt_of(start),
        behavior=behavior_of(start),
        hooks=hooks,
        middleware=_middleware(docs, skills),
        workspace=Workspace(here.directory, [one for one in (*skills, *readable) if one.is_dir()]),
        store=store,
        session=session,
        ask=approvals.ask,
        agent_id=AGENT_ID,
    )
    approvals.install(hooks)  # last: what other hooks refuse is not asked
    _open(start, stream, agent, docs)
    await _tell_skills(stream, skills)
    return Assembled(agent, stream, approvals, Budget(limits_of(start)))


def stream_of(start: Start, here: Surroundings, provider: Provider | None) -> EventStream:
    """The event stream of the run."""
    context = context_of(
        here.run_id,
        cwd=str(here.directory),
        approvals=mode_of(start),
        interactive=start.interactive,
        model=provider.model if provider is not None else None,
        max_turns=start.max_turns,
    )
    return EventStream(context, here.sink, here.now)


def mode_of(start: Start) -> ApprovalMode:
    """Who is asked; somebody, where nobody says it."""
    return start.approval_mode or "prompt"


async def _session(start: Start, store: FileSessionStore | None, here: Surroundings) -> Session | None:
    given = start.fork_session_id or start.session_id
    if given is None:
        return None
    if store is None:
        store = FileSessionStore(sessions_directory(here.environ))
    session = await resume(store, given)
    if start.fork_session_id is None:
        return session
    return fork(session, new_id(), now_ms=here.now())


def _middleware(docs: Sequence[Path], skills: Sequence[Path]) -> list[Middleware]:
    """What is switched on, the outermost first. Contexts that grow too large are the engine's own business."""
    made: list[Middleware] = [TodoListMiddleware()]
    if skills:
        made.append(SkillsMiddleware(skills))
    if docs:
        made.append(MemoryMiddleware(docs))
    return made


async def _tell_skills(stream: EventStream, directories: Sequence[Path]) -> None:
    if not directories:
        return
    found = await to_thread.run_sync(load_skills, directories)
    stream.tell(*[facts.SkillLoaded(skill.name, str(skill.file_path)) for skill in found.skills])


def _agents_docs(start: Start, directory: Path) -> list[Path]:
    if start.agents_docs is None:
        found = directory / AGENTS_DOC
        return [found] if found.is_file() else []
    for one in start.agents_docs:
        if not os.access(directory / one, os.R_OK):
            raise Fault(f"{one} cannot be read; name a file that is there with --agents-doc")
    return [directory / one for one in start.agents_docs]


def _open(start: Start, stream: EventStream, agent: Agent, docs: Sequence[Path]) -> None:
    """The first events: which session it is, and what is known at its beginning."""
    if not start.no_session:
        session = agent.session
        forked_from = session.forked_from if start.fork_session_id is not None else None
        resumed = start.session_id is not None and forked_from is None
        prior = sum(isinstance(one, UserMessage) and one.origin == "user" for one in agent.messages)
        stream.tell(facts.SessionKnown(session.session_id, resumed, forked_from, prior, agent.provider.model))
    stream.tell(*[facts.AgentdocRead(str(path)) for path in docs])
    for sentence in not_honoured(start):
        stream.note(sentence, "warn")
