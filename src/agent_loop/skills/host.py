"""The skills of one agent, and which of them are active.

Skills are active until the end of the run. What a continued history activated is active again: the results of
`skills_use` in it are the record, so that resumed sessions, reruns and branches need no other one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import anyio
from anyio import to_thread

from agent_loop.errors import ToolError
from agent_loop.hooks.contexts import (
    HookContext,
    SkillActivated,
    SkillDeactivated,
    SkillsCatalog,
    SkillsResolved,
)
from agent_loop.hooks.registry import Chain, Hooks
from agent_loop.loop.run import USE_SKILL, LoopRun
from agent_loop.messages import Message, ToolMessage
from agent_loop.skill_files import Skill, SkillSet, xml_text
from agent_loop.skills.content import COMMAND, NOT_RUN, read_body, render_content, resources_of
from agent_loop.skills.settings import SkillSettings, find_skills
from agent_loop.state import AgentState

STATE_KEY = "skills"
"""Key in `AgentState.extra` of what the history does not record."""
EXPLICIT, ENDED = "explicit", "ended"
"""In it: the instructions of explicitly activated skills by name; and the calls that activated skills which were
deactivated explicitly, by name.
"""
Via = Literal["model", "explicit", "resume"]


@dataclass(frozen=True, slots=True)
class Activation:
    """An active skill."""

    skill: Skill
    content: str
    """Its instructions, as the model got them."""
    call_id: str | None = None
    """The tool call whose result has the instructions; None: no call has."""

    def is_in(self, messages: Sequence[Message]) -> bool:
        """Return whether these messages contain the whole instructions."""
        return any(
            isinstance(message, ToolMessage)
            and message.tool_call_id == self.call_id
            and message.text.startswith(self.content)
            for message in messages
        )


class SkillHost:
    """The skills of an agent: searched once, with a catalog that stays the same, and the active ones."""

    def __init__(self, settings: SkillSettings, idle_scopes: Sequence[Hooks], state: Callable[[], AgentState]) -> None:
        """`idle_scopes` are the hooks outside of runs; `state` returns the state of the session."""
        self.settings = settings
        self.skills: tuple[Skill, ...] = ()
        self.catalog = ""
        self.active: dict[str, Activation] = {}
        """The active skills by name, in the order of their activation."""
        self.run: LoopRun | None = None
        """The run in progress."""
        self.notes: list[str] = []
        """Notes for the next run."""
        self.hook_failures: list[tuple[str, Exception]] = []
        """Hooks that failed outside of runs; the next run reports and removes them."""
        self.restores = True
        """Whether the next run activates again what its history activated: it is the first one of this history."""
        self._scopes = tuple(idle_scopes)
        self._idle_hooks = Chain(self._scopes, self._hook_failed)
        self._state = state
        self._is_resolved = False
        self._resolving: anyio.Event | None = None
        self._dropped: list[Activation] = []
        """Skills that a new session deactivated, before their hooks could be awaited."""

    def twin(self, state: Callable[[], AgentState]) -> "SkillHost":
        """Return a host with the same skills and active skills that changes independently."""
        twin = self.heir(state, self._scopes)
        twin.active, twin.restores = dict(self.active), self.restores
        return twin

    def heir(self, state: Callable[[], AgentState], idle_scopes: Sequence[Hooks]) -> "SkillHost":
        """Return a host with the same skills, of which none is active; for a sub-agent."""
        heir = SkillHost(self.settings, idle_scopes, state)
        heir.skills, heir.catalog, heir._is_resolved = self.skills, self.catalog, self._is_resolved
        return heir

    # -- the skills

    async def resolve(self) -> None:
        """Search the skills and make the catalog, once; concurrent callers wait for the first."""
        while self._resolving is not None:
            await self._resolving.wait()
        if self._is_resolved:
            return
        self._resolving = anyio.Event()
        try:
            found = await to_thread.run_sync(find_skills, self.settings)
            await self._adopt(found)
        finally:
            self._resolving.set()
            self._resolving = None

    async def _adopt(self, found: SkillSet) -> None:
        await self._fire("skills:resolve", SkillsResolved, skills=found.skills)
        self.skills = found.skills
        if found.skills:
            context = SkillsCatalog(skills=found.skills, catalog=catalog_of(found.skills), **self._fields())
            await self._hooks().fire("skills:catalog", context)
            self.catalog = str(context.catalog)
        self.notes.extend(found.notes)
        self._is_resolved = True

    def find(self, name: str) -> Skill:
        """Return a skill. Raises `ToolError` if there is none of this name."""
        for skill in self.skills:
            if skill.name == name:
                return skill
        known = ", ".join(skill.name for skill in self.skills) or "none"
        raise ToolError(f"there is no skill {name[:80]!r}; skills: {known}")

    def find_active(self, name: str) -> Skill:
        """Return an active skill. Raises `ToolError` if it is not active."""
        skill = self.find(name)
        if name not in self.active:
            raise ToolError(f"the skill {name!r} is not active; activate it with {USE_SKILL} first")
        return skill

    # -- activation

    async def activate(self, skill: Skill, content: str, via: Via, call_id: str | None = None) -> None:
        """Make a skill active and fire the hook; one that is active gets the new instructions. Raises `ToolError`."""
        is_new = skill.name not in self.active
        if is_new:
            self.check_room()
        self.active[skill.name] = Activation(skill, content, call_id)
        self._change_stored(ENDED, skill.name, None)
        if via == "explicit":
            self._change_stored(EXPLICIT, skill.name, content)
        if is_new:
            await self._fire("skills:activate", SkillActivated, skill=skill, via=via)

    async def activate_explicitly(self, name: str) -> str:
        """Make a skill active on behalf of the application; return its instructions. Raises `ToolError`.

        Commands in the instructions are not run.
        """
        await self.resolve()
        await self.report_dropped()
        skill = self.find(name)
        if name not in self.active:
            content = await to_thread.run_sync(partial(content_of, skill))
            await self.activate(skill, content, "explicit")
        return self.active[name].content

    def check_room(self) -> None:
        """Raise `ToolError` if no further skill may be active."""
        most = self.settings.max_active
        if most is not None and len(self.active) >= most:
            raise ToolError(f"no further skill can be active ({', '.join(self.active)}): at most {most} may be")

    async def deactivate(self, name: str) -> bool:
        """End an activation explicitly; return whether the skill was active. A resume does not activate it again."""
        activation = self.active.pop(name, None)
        if activation is None:
            return False
        self._change_stored(EXPLICIT, name, None)
        if activation.call_id is not None:
            self._change_stored(ENDED, name, activation.call_id)
        await self._fire("skills:deactivate", SkillDeactivated, skill=activation.skill, reason="explicit")
        return True

    async def deactivate_all(self) -> None:
        """End all activations at the end of a run."""
        ended, self.active = list(self.active.values()), {}
        for activation in ended:
            self._change_stored(EXPLICIT, activation.skill.name, None)
        for activation in ended:
            await self._fire("skills:deactivate", SkillDeactivated, skill=activation.skill, reason="run-end")

    def reset(self, *, restores: bool = False) -> None:
        """End all activations because another session begins. Their hooks fire with the next call that can await them.

        `restores`: the new session has a history, which may activate skills.
        """
        self._dropped += self.active.values()
        self.active = {}
        self.restores = restores

    async def report_dropped(self) -> None:
        """Fire the hooks of the skills that `reset` deactivated."""
        dropped, self._dropped = self._dropped, []
        for activation in dropped:
            await self._fire("skills:deactivate", SkillDeactivated, skill=activation.skill, reason="reset")

    async def restore(self, history: Sequence[Message]) -> None:
        """Make the skills active that a history activated, and those that were active explicitly when a run broke off.

        Skills that were deactivated explicitly, that do not exist any more, or for which there is no room stay
        inactive.
        """
        self.restores = False
        stored = self._stored()
        ended: Mapping[str, Any] = stored.get(ENDED) or {}
        found = {name: used for name, used in used_skills(history).items() if ended.get(name) != used[0]}
        explicit = {name: (None, text) for name, text in (stored.get(EXPLICIT) or {}).items() if isinstance(text, str)}
        known = {skill.name: skill for skill in self.skills}
        wanted = {
            name: each for name, each in {**found, **explicit}.items() if name in known and name not in self.active
        }
        most = self.settings.max_active
        room = len(wanted) if most is None else min(len(wanted), max(0, most - len(self.active)))
        for name, (call_id, content) in list(wanted.items())[len(wanted) - room :]:  # the latest
            await self.activate(known[name], content, "resume", call_id)

    # -- internals

    def _stored(self) -> dict[str, Any]:
        stored = self._state().extra.get(STATE_KEY)
        return stored if isinstance(stored, dict) else {}

    def _change_stored(self, part: str, name: str, value: str | None) -> None:
        """Set an entry in the saved state, or remove it with None. Without entries, nothing is stored."""
        parts = {key: dict(self._stored().get(key) or {}) for key in (EXPLICIT, ENDED)}
        if value is None:
            parts[part].pop(name, None)
        else:
            parts[part][name] = value
        extra, kept = self._state().extra, {key: entries for key, entries in parts.items() if entries}
        if kept:
            extra[STATE_KEY] = kept
        else:
            extra.pop(STATE_KEY, None)

    def _hooks(self) -> Chain:
        return self._idle_hooks if self.run is None else self.run.hooks

    def _fields(self) -> Mapping[str, Any]:
        return {} if self.run is None else self.run.hook_fields

    async def _fire(self, name: str, kind: type[HookContext], **fields: Any) -> None:
        if self._hooks().has_handlers(name):
            await self._hooks().fire(name, kind(**fields, **self._fields()))

    async def _hook_failed(self, hook: str, error: Exception) -> None:
        self.hook_failures.append((hook, error))


def catalog_of(skills: Sequence[Skill]) -> str:
    """Return the catalog for the system prompt, in the order of the skills."""
    lines = [
        f"<skill>\n<name>{skill.name}</name>\n<description>{xml_text(skill.description)}</description>\n</skill>"
        for skill in skills
    ]
    return "\n".join(("<available_skills>", *lines, "</available_skills>"))


def content_of(skill: Skill, body: str | None = None) -> str:
    """Return the instructions of a skill for the model. Blocking. Raises `WorkspaceError` if they cannot be read.

    `body` is the body with interpolated commands; None: its commands are not run.
    """
    text = read_body(skill) if body is None else body
    notes = [NOT_RUN] if body is None and COMMAND.search(text) else []
    return render_content(skill, text, resources_of(skill), notes)


def used_skills(history: Sequence[Message]) -> dict[str, tuple[str | None, str]]:
    """Return the call and the instructions of each skill that a history activated, the latest last."""
    found: dict[str, tuple[str | None, str]] = {}
    for message in history:
        details = message.details if isinstance(message, ToolMessage) and message.name == USE_SKILL else None
        name = details.get("activated") if isinstance(details, dict) else None
        if isinstance(message, ToolMessage) and isinstance(name, str) and not message.is_error:
            found.pop(name, None)
            found[name] = message.tool_call_id, message.text
    return found
