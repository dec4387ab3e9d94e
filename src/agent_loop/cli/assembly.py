"""Assembles the agent of a run: model, tools, middleware, session, hooks, approvals and event stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec
from anyio import to_thread

from agent_loop.agent import Agent
from agent_loop.agent_options import MAIN
from agent_loop.cli.agents import choose_agent, without_user
from agent_loop.cli.approvals import Approvals, Asker
from agent_loop.cli.errors import UsageError
from agent_loop.cli.home import AGENT_VARIABLE, outputs_directory, sessions_directory
from agent_loop.cli.instruction_files import instruction_files
from agent_loop.cli.mcp_settings import configured_servers
from agent_loop.cli.mux_runner import PREFIX, MuxRunner, check_agents
from agent_loop.cli.openapi_services import openapi_tools, secret_variables
from agent_loop.cli.protocol import StartCommand
from agent_loop.cli.settings import (
    TURN_LIMITS,
    behavior_of,
    default_model_note,
    limits_of,
    mcp_servers_of,
    model_of,
    skills_of,
    unsupported_settings,
    untrusted_skills_note,
)
from agent_loop.cli.stream import DELEGATE_TOOL, DELEGATING, ApprovalMode, Clock, EventStream, Sink, stream_context
from agent_loop.cli.system_prompt import environment_of, system_prompt_of
from agent_loop.cli.tool_names import check_tool_names
from agent_loop.cli.turns import ConversationBudget
from agent_loop.hooks import Hooks, Middleware
from agent_loop.hooks.contexts import SkillActivated
from agent_loop.messages import UserMessage
from agent_loop.middleware.empty_answers import EmptyAnswerMiddleware
from agent_loop.middleware.memory import MemoryMiddleware
from agent_loop.middleware.todos import TodoListMiddleware
from agent_loop.presets.preset import Preset
from agent_loop.presets.registry import AgentRegistry, Completed
from agent_loop.providers import Provider
from agent_loop.providers.registry import provider_named
from agent_loop.sessions.file_store import FileSessionStore
from agent_loop.sessions.ids import new_id
from agent_loop.sessions.resume import fork, resume
from agent_loop.sessions.session import Session
from agent_loop.skills.settings import SkillSettings
from agent_loop.subagents import LoopRunner, SubAgentTool
from agent_loop.tools.builtin import BackgroundCommands, ShellSandbox, ShellTool, default_tools
from agent_loop.tools.builtin.plan import PresentPlanTool
from agent_loop.tools.builtin.shell_rules import without_secrets
from agent_loop.tools.builtin.web_fetch import WebFetchTool
from agent_loop.tools.pinned_http import is_available
from agent_loop.tools.tool import Tool
from agent_loop.workspace import Workspace
from agent_mux.sdk import facts

AGENT_ID = "amux-agent"
NO_CONTEXT = "It knows only the task: state the goal, what you know already, and what the report must contain."


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnvironment:
    """The environment of the program: variables, directory, clock, and the receivers of events and questions."""

    environ: Mapping[str, str]
    directory: Path
    run_id: str
    now: Clock
    sink: Sink
    asker: Asker | None = None
    can_ask: bool = True
    """Whether a user can answer requests: at the terminal, or by control lines."""
    base_url: str | None = None


@dataclass(frozen=True, slots=True)
class AssembledAgent:
    """An agent with the event stream, approvals and budget of its conversation."""

    agent: Agent
    stream: EventStream
    approvals: Approvals
    budget: ConversationBudget
    start: StartCommand
    environment: ProgramEnvironment
    background: BackgroundCommands
    sandbox: ShellSandbox

    def close(self) -> None:
        """End the background commands, and remove temporary files. Blocks up to the grace period of commands."""
        self.background.close()
        self.sandbox.close()

    def use_model(self, name: str) -> None:
        """Use another model from the next turn on. Raises `AgentLoopError` for one that cannot be used."""
        self.agent.provider = _provider(name, self.start, self.environment)


async def assemble(start: StartCommand, environment: ProgramEnvironment) -> AssembledAgent:
    """Assemble the agent and emit the first events. Raises `UsageError` and `AgentLoopError` for invalid settings."""
    environ, directory = environment.environ, environment.directory
    store = None if start.no_session else FileSessionStore(sessions_directory(environ))
    session = await _load_session(start, store, environment)
    began_with = session.loops[0].agent if session is not None and session.loops else ""
    chosen = await to_thread.run_sync(choose_agent, start, environ, directory, began_with)
    start, preset = chosen.start if environment.can_ask else without_user(chosen.start), chosen.preset
    model = model_of(start, environ)
    provider = provider_named(model, base_url=environment.base_url, environ=environ)
    stream = create_stream(start, environment, provider)
    docs = [*instruction_files(start, directory, environ), *filter(Path.is_file, map(Path, preset.memory or ()))]
    skills = None if "skills" in preset.without else skills_of(start, environ, directory)
    named = {*(each.name for each in start.mcp_servers), *(each.name for each in preset.mcp_servers)}
    stored = configured_servers(environ, directory, is_trusted=start.trust_project, named=named)
    outputs = None if start.no_session else outputs_directory(environ, environment.now() / 1000)
    background = BackgroundCommands(outputs)
    added = _added(start, directory)
    await to_thread.run_sync(check_agents, start.sub_agents)
    sandbox = ShellSandbox(start.sandbox, [directory.resolve(), *added], network=start.sandbox_network)
    obstacle = await to_thread.run_sync(lambda: sandbox.obstacle)
    hidden = secret_variables(start.openapi)
    shell = ShellTool(
        environment={name: value for name, value in without_secrets(environ).items() if name not in hidden},
        variables={AGENT_VARIABLE: "1"},
        output_directory=outputs,
        background=background,
        sandbox=sandbox,
        may_leave_sandbox=start.sandbox == "auto" and "prompt" in {approval_mode_of(start), chosen.mode_after_plan},
    )
    surroundings = "\n".join(filter(None, [environment_of(directory, datetime.now().astimezone()), sandbox.describe()]))
    completed = partial(_with_whole_prompt, start, surroundings)
    tools: list[Tool] = [
        *default_tools(shell),
        *_web_tools(is_offline=obstacle is None and not start.sandbox_network),
        *await openapi_tools(start.openapi, directory, environ),
        *_delegating(start, docs, environment, chosen.registry, completed),
    ]
    readable = [*_readable(start, directory, skills, chosen.registry), *([outputs] if outputs else [])]
    workspace = Workspace(directory, [path for path in readable if path.is_dir()], writable=added)
    approvals = Approvals(
        stream,
        approval_mode_of(start),
        directory=str(directory),
        workspace=workspace,
        asks_everything=start.asks_everything,
        accepts_edits=start.accept_edits,
        allowed_tools=start.allowed_tools,
        asker=environment.asker,
        mode_after_plan=chosen.mode_after_plan,
    )
    if chosen.mode_after_plan is not None:
        tools.append(PresentPlanTool(approvals.review_plan))
    servers = mcp_servers_of(start, directory, preset.mcp_servers, stored.servers)
    misspelt = list(check_tool_names(start, [tool.name for tool in tools], has_servers=bool(servers)))
    hooks, selection = Hooks(), preset.selection()
    for each in selection:
        each.install_gates(hooks)
    agent = Agent(
        provider,
        tools=tools,
        system_prompt=system_prompt_of(start, surroundings, preset),
        behavior=behavior_of(start, preset.behavior),
        hooks=hooks,
        middleware=[
            EmptyAnswerMiddleware(),
            *preset.allowed_middleware([TodoListMiddleware(), *_memory(docs)]),
            *selection,
        ],
        aliases=preset.aliases,
        workspace=workspace,
        fallbacks=[_provider(name, start, environment) for name in start.fallback_models],
        store=store,
        session=session,
        ask=approvals.ask,
        agent_id=AGENT_ID,
        mcp_servers=servers,
        skills=skills,
        handoffs=chosen.registry.handoffs(
            preset, provider_of=lambda name: _provider(name, start, environment), completed=completed
        ),
        name=preset.name or MAIN,
    )
    approvals.install(hooks)  # last, so that calls blocked by other hooks need no approval
    _emit_session(start, stream, agent, docs)
    if start.sandbox != "off" and obstacle is not None:
        stream.note(f"commands are not sandboxed: {obstacle}", "warn")
    for sentence in default_model_note(start, environ, model):
        stream.note(sentence)
    for sentence in (*chosen.problems, *untrusted_skills_note(skills, directory), *stored.notes, *misspelt):
        stream.note(sentence, "warn")
    stream.emit(*[facts.SkillLoaded(skill.name, str(skill.file_path)) for skill in await agent.load_skills()])
    hooks.on("skills:activate", partial(_emit_activation, stream))
    budget = ConversationBudget(limits_of(start, preset.behavior), TURN_LIMITS)
    return AssembledAgent(agent, stream, approvals, budget, start, environment, background, sandbox)


def _web_tools(*, is_offline: bool) -> list[Tool]:
    """Return the tool for pages of the web, if its client is installed and the run may use the network."""
    return [WebFetchTool()] if is_available() and not is_offline else []


def _provider(name: str, start: StartCommand, environment: ProgramEnvironment) -> Provider:
    """Return the provider of another model than that of the run. Raises `AgentLoopError` if it cannot be used."""
    model = model_of(msgspec.structs.replace(start, model=name), environment.environ)
    return provider_named(model, base_url=environment.base_url, environ=environment.environ)


def create_stream(start: StartCommand, environment: ProgramEnvironment, provider: Provider | None) -> EventStream:
    """Return the event stream of the run. `provider` is None if it could not be created."""
    context = stream_context(
        environment.run_id,
        cwd=str(environment.directory),
        approvals=approval_mode_of(start),
        interactive=start.interactive,
        model=provider.model if provider is not None else None,
        max_turns=start.max_turns,
    )
    delegating = DELEGATING.union(PREFIX + name for name in start.sub_agents)
    return EventStream(context, environment.sink, environment.now, delegating)


def approval_mode_of(start: StartCommand) -> ApprovalMode:
    """Return the approval mode of the run, "prompt" by default."""
    return start.approval_mode or "prompt"


async def _load_session(
    start: StartCommand, store: FileSessionStore | None, environment: ProgramEnvironment
) -> Session | None:
    """Return the session to resume or a fork of it, None for a new session."""
    session_id = start.fork_session_id or start.session_id
    if session_id is None:
        return None
    if store is None:
        store = FileSessionStore(sessions_directory(environment.environ))
    session = await resume(store, session_id)
    if start.fork_session_id is None:
        return session
    return fork(session, new_id(), now_ms=environment.now())


def _readable(
    start: StartCommand, directory: Path, skills: SkillSettings | None, registry: AgentRegistry
) -> list[Path]:
    """Return the directories that tools may read besides the working directory: named ones, and those of skills."""
    of_agents = [path for each in registry for path in each.skills or ()]
    named = [*start.skills, *(() if skills is None else skills.user), *of_agents, *start.readable]
    return [directory / path for path in named]


def _emit_activation(stream: EventStream, context: SkillActivated) -> None:
    """Emit that the model uses a skill. A resumed one is active before the turn begins, and not used again."""
    if context.via == "model":
        stream.emit(facts.SkillInvoked(context.skill.name))


def _with_whole_prompt(start: StartCommand, surroundings: str, preset: Preset) -> Preset:
    """Return the target of a handoff with the system prompt that it would have as the agent of the run."""
    return replace(preset, system_prompt=system_prompt_of(start, surroundings, preset))


def _delegating(
    start: StartCommand,
    docs: Sequence[Path],
    environment: ProgramEnvironment,
    registry: AgentRegistry,
    completed: Completed,
) -> list[SubAgentTool]:
    """Return the tools that start sub-agents: loops with the same settings or those of an agent, and other programs."""
    memory = partial(_memory, docs)
    own = SubAgentTool(
        DELEGATE_TOOL,
        runner=LoopRunner(middleware=memory),
        limits=TURN_LIMITS,
        kinds=registry.sub_agents(
            middleware=memory, provider_of=lambda name: _provider(name, start, environment), completed=completed
        ),
    )
    others = [
        SubAgentTool(
            PREFIX + name,
            description=f"Delegate a task to {name}, another coding agent in the same directory. {NO_CONTEXT}",
            runner=MuxRunner(name, environment.directory, environment.environ),
            limits=TURN_LIMITS,
        )
        for name in start.sub_agents
    ]
    return [own, *others]


def _memory(docs: Sequence[Path]) -> list[Middleware]:
    return [MemoryMiddleware(docs)] if docs else []


def _added(start: StartCommand, directory: Path) -> list[Path]:
    """Return the directories that tools may change besides the working directory. Raises `UsageError` for others."""
    for path in start.add_dirs:
        if not (directory / path).is_dir():
            raise UsageError(f"{path} is not a directory; pass an existing one to --add-dir")
    return [directory / path for path in start.add_dirs]


def _emit_session(start: StartCommand, stream: EventStream, agent: Agent, docs: Sequence[Path]) -> None:
    """Emit the session, the instruction files, and notes about unsupported settings."""
    if not start.no_session:
        session = agent.session
        forked_from = session.forked_from if start.fork_session_id is not None else None
        resumed = start.session_id is not None and forked_from is None
        prior = sum(isinstance(message, UserMessage) and message.origin == "user" for message in agent.messages)
        stream.emit(facts.SessionKnown(session.session_id, resumed, forked_from, prior, agent.provider.model))
    stream.emit(*[facts.AgentdocRead(str(path)) for path in docs])
    for sentence in unsupported_settings(start):
        stream.note(sentence, "warn")
