"""The tools of skills: `skills_use`, `skills_read` and `skills_run_script`.

Files are opened below the directory of the skill, without following a link out of it.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.errors import ToolError
from agent_loop.loop.run import USE_SKILL
from agent_loop.messages import Text
from agent_loop.skills.content import COMMAND, directory_of, interpolate, read_body
from agent_loop.skills.host import SkillHost, content_of
from agent_loop.tools.builtin.file_call import behavior_of, parse_arguments, run_in_thread, schema_of
from agent_loop.tools.builtin.read import LIMIT, MAX_BYTES, ReadArguments, render_content
from agent_loop.tools.builtin.shell import ShellTool
from agent_loop.tools.effects import CommandRan, FileRead
from agent_loop.tools.tool import Risk, ToolContext, ToolKind, ToolResult
from agent_loop.workspace import Workspace

READ_SKILL, RUN_SCRIPT = "skills_read", "skills_run_script"
DIRECTORY_VARIABLE = "SKILL_DIR"
"""The variable with the directory of the skill, for its scripts."""
INTERPRETERS: Mapping[str, str] = {
    ".py": "python3", ".sh": "bash", ".bash": "bash", ".js": "node", ".mjs": "node", ".rb": "ruby", ".pl": "perl",
}  # fmt: skip
"""Programs that run scripts by their suffix, if the file does not name one itself."""
MAX_ARGUMENTS = 100
Name = Annotated[str, Meta(description="Name of the skill.")]


class UseArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `skills_use`."""

    name: Name


class SkillReadArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `skills_read`."""

    name: Name
    path: Annotated[str, Meta(description="The file, relative to the directory of the skill.")]
    offset: Annotated[int, Meta(ge=1, description="Number of the first line, from 1.")] = 1
    limit: Annotated[int, Meta(ge=0, description="Maximum number of lines; 0: no limit.")] = LIMIT


class ScriptArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `skills_run_script`."""

    name: Name
    path: Annotated[str, Meta(description="The script, relative to the directory of the skill.")]
    args: Annotated[list[str], Meta(max_length=MAX_ARGUMENTS, description="Arguments, passed without a shell.")] = []
    timeout: Annotated[float | None, Meta(description="Time limit in seconds.")] = None


class SkillTool:
    """A tool of skills. A sub-agent does not inherit it: it has tools of its own, with its own active skills."""

    name: str

    def __init__(self, host: SkillHost, shell: ShellTool) -> None:
        """`shell` has the limits, the environment and the sandbox of commands."""
        self._host = host
        self._shell = shell


class UseSkillTool(SkillTool):
    """The tool `skills_use`, which activates a skill and returns its instructions."""

    name = USE_SKILL
    label = "Use skill"
    sequential = True
    description = (
        "Activate a skill of <available_skills> and return its instructions. Call it before you begin work that a "
        "skill describes, and follow the instructions."
    )
    parameters = schema_of(UseArguments)

    @property
    def kind(self) -> ToolKind:
        """Whether a call may run commands: those in the instructions."""
        return "execute" if self._host.settings.shell_interpolation else "read"

    @property
    def risk(self) -> Risk:
        """The risk of a call: high if it may run commands."""
        return "high" if self._host.settings.shell_interpolation else "low"

    def command_line(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the commands in the instructions, one per line; None if there are none or they are not run."""
        if not self._host.settings.shell_interpolation:
            return None
        try:
            body = read_body(self._host.find(str(arguments.get("name"))))
        except ToolError:
            return None
        return "\n".join(COMMAND.findall(body)) or None

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Activate a skill. Raises `ToolError` if there is none of this name, or too many are active."""
        host, skill = self._host, self._host.find(parse_arguments(UseArguments, arguments).name)
        if self._is_known(skill.name, context):
            return ToolResult((Text(f"The skill {skill.name} is active already; follow its instructions above."),))
        if skill.name not in host.active:
            host.check_room()
        body: str | None = None
        effects: tuple[CommandRan, ...] = ()
        if host.settings.shell_interpolation:
            plain = await run_in_thread(partial(read_body, skill))
            if COMMAND.search(plain):
                body, effects = await self._interpolated(plain, skill.base_dir, context)
        content = await run_in_thread(partial(content_of, skill, body))
        await host.activate(skill, content, "model", context.call_id)
        return ToolResult((Text(content),), details={"activated": skill.name}, effects=effects)

    def _is_known(self, name: str, context: ToolContext) -> bool:
        """Return whether the skill is active and the model has its instructions."""
        activation = self._host.active.get(name)
        if activation is None:
            return False
        if activation.call_id is None or context.seen is None:
            return True
        shown = context.seen(activation.call_id) or ()
        return any(isinstance(each, Text) and each.text.startswith(activation.content) for each in shown)

    async def _interpolated(
        self, body: str, directory: Path | None, context: ToolContext
    ) -> tuple[str, tuple[CommandRan, ...]]:
        """Return the body with the output of its commands, and the effect of having run them."""
        shell = replace(self._shell, keep_directory=False, metadata=False, output_directory=None, background=None)
        place = context.workspace or (None if directory is None else Workspace(directory))
        codes: list[int] = []

        async def run(command: str) -> str:
            inner = ToolContext(call_id=context.call_id, tool_name=context.tool_name, workspace=place)
            try:
                result = await shell.execute({"command": command}, inner)
            except ToolError as error:
                codes.append(1)
                return f"[the command failed: {error}]"
            details = result.details if isinstance(result, ToolResult) else {}
            text = result.text if isinstance(result, ToolResult) else ""
            codes.append(details.get("exit_code", 0))
            return text if not codes[-1] else f"{text}\n[the command ended with exit code {codes[-1]}]"

        text = await interpolate(body, run)
        return text, (CommandRan(next(filter(None, codes), 0)),)


class ReadSkillTool(SkillTool):
    """The tool `skills_read`, which reads a file of an active skill."""

    name = READ_SKILL
    label = "Read skill file"
    kind = "read"
    risk = "low"
    description = f"Read a file of an active skill: up to {LIMIT} lines from line `offset`, or an image."
    parameters = schema_of(SkillReadArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Read a file. Raises `ToolError` if the skill is not active or the file is not in its directory."""
        parsed = parse_arguments(SkillReadArguments, arguments)
        directory = directory_of(self._host.find_active(parsed.name))
        return await run_in_thread(partial(_read, directory, parsed, context))


class RunScriptTool(SkillTool):
    """The tool `skills_run_script`, which runs a script of an active skill in the workspace."""

    name = RUN_SCRIPT
    label = "Run skill script"
    kind: ToolKind = "execute"
    risk = "high"
    description = (
        "Run a script of an active skill, with arguments and without a shell. It runs in the workspace and finds its "
        f"own files in ${DIRECTORY_VARIABLE}. Returns its output and exit code."
    )
    parameters = schema_of(ScriptArguments)

    def command_line(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the script and its arguments, quoted as for a shell; None for invalid arguments."""
        try:
            parsed = parse_arguments(ScriptArguments, arguments)
            directory = directory_of(self._host.find(parsed.name))
        except ToolError:
            return None
        return shlex.join((str(directory / parsed.path), *parsed.args))

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Run a script.

        Raises `ToolError` if the skill is not active, the file is not in its directory, or it cannot be run.
        """
        parsed = parse_arguments(ScriptArguments, arguments)
        directory = directory_of(self._host.find_active(parsed.name))
        argv = await run_in_thread(partial(script_argv, directory, parsed.path))
        return await self._shell.run_program(
            (*argv, *parsed.args),
            directory if context.workspace is None else context.workspace.root,
            context,
            seconds=parsed.timeout,
            variables={DIRECTORY_VARIABLE: str(directory)},
        )


def skill_tools(host: SkillHost, shell: ShellTool | None) -> Sequence[SkillTool]:
    """Return the tools of skills. `shell` is that of the agent, whose settings hold for scripts as well."""
    shell = shell or ShellTool()
    tools = (UseSkillTool(host, shell), ReadSkillTool(host, shell), RunScriptTool(host, shell))
    return tools if host.settings.scripts else tools[:2]


def script_argv(directory: Path, path: str) -> tuple[str, ...]:
    """Return the command of a script in this directory. Blocking. Raises `ToolError`."""
    files = Workspace(directory)
    entry = files.stat(path)
    if entry is None or entry.kind != "file":
        raise ToolError(f"{path[:200]!r} is not a file of the skill; its resources are listed in its instructions")
    script = files.resolve(path)
    is_executable = os.access(script, os.X_OK)
    if is_executable and files.read_file(path).data.startswith(b"#!"):
        return (str(script),)
    interpreter = INTERPRETERS.get(script.suffix.lower())
    if interpreter is not None:
        return interpreter, str(script)
    if is_executable:
        return (str(script),)
    kinds = " ".join(INTERPRETERS)
    raise ToolError(f"{path[:200]!r} is not executable, and its suffix is none of {kinds}; run it with another tool")


def _read(directory: Path, arguments: SkillReadArguments, context: ToolContext) -> ToolResult:
    content = Workspace(directory).read_file(arguments.path)
    page = ReadArguments(arguments.path, arguments.offset, arguments.limit, MAX_BYTES)
    shown = render_content(content, page, numbered=behavior_of(context).read_line_numbers)
    return ToolResult((shown,), details={"path": str(content.path)}, effects=(FileRead(str(content.path)),))
