"""Agents with skills on disk, and what happens to the skills in their runs."""

from pathlib import Path
from typing import Any

from tests.unit.embedded.fake_provider import FakeProvider, reply
from tests.unit.embedded.loop.harness import agent, streamed

from agent_loop import Agent, SkillSettings
from agent_loop.events import LoopEvent, ToolResulted
from agent_loop.messages import ToolCall

LIVELY = ("skills:resolve", "skills:catalog", "skills:activate", "skills:deactivate")


def write_skill(root: Path, name: str, body: str = "Follow me.", **fields: str) -> Path:
    """Write a skill and return its directory."""
    directory = root / name
    directory.mkdir(parents=True, exist_ok=True)
    head = {"name": name, "description": f"Does {name}.", **{key.replace("_", "-"): fields[key] for key in fields}}
    lines = "".join(f"{key}: {value}\n" for key, value in head.items())
    (directory / "SKILL.md").write_text(f"---\n{lines}---\n\n{body}\n", "utf-8")
    return directory


def write_script(directory: Path, name: str, text: str, mode: int = 0o755) -> Path:
    """Write a file of a skill and return its path."""
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return path


def called(tool: str, call_id: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(call_id, tool, arguments)


def use(name: str, call_id: str = "use") -> ToolCall:
    return called("skills_use", call_id, name=name)


class SkillWorld:
    """An agent with the skills in `root`, and the skill hooks that fired."""

    def __init__(self, root: Path, *answers: Any, tools: tuple[Any, ...] = (), **options: Any) -> None:
        self.fired: list[tuple[str, ...]] = []
        self.provider = FakeProvider(*answers)
        settings = options.pop("skills", None) or SkillSettings(user=[root], **options.pop("settings", {}))
        hooks = {name: self._recorder(name) for name in LIVELY}
        self.agent: Agent = agent(self.provider, *tools, skills=settings, hooks=hooks, **options)

    def _recorder(self, name: str) -> Any:
        def record(context: Any) -> None:
            skill = getattr(context, "skill", None)
            why = getattr(context, "via", None) or getattr(context, "reason", None)
            self.fired.append((name.partition(":")[2], *((skill.name, str(why)) if skill is not None else ())))

        return record

    @property
    def changes(self) -> list[tuple[str, ...]]:
        """The activations and deactivations, with their reasons."""
        return [each for each in self.fired if each[0] in {"activate", "deactivate"}]

    async def run(self, prompt: str = "go", **options: Any) -> list[LoopEvent]:
        return (await streamed(self.agent, prompt, **options))[0]

    async def results(self, *tool_calls: ToolCall, **options: Any) -> list[str]:
        """Run one answer per call, and return the texts of the results."""
        self.provider.answers += [*(reply("", each) for each in tool_calls), reply("Done.")]
        return result_texts(await self.run(**options))


def result_texts(events: list[LoopEvent]) -> list[str]:
    return [event.message.text for event in events if isinstance(event, ToolResulted)]
