"""The contestants, and the compilation of abstract steps to the calls of their tools.

Tool names and arguments are those that each harness sends to the model. `LiveKit.format_tool_call` has the calls that
the end-to-end tests use, too.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agent_mux_testing.live import Edit, Read, Shell, ToolPart, Write, kit_of
from agent_mux_testing.model_server import ToolUse
from benchmarks.coding_tasks.steps import Change, Create, Files, Find, Look, Mistake, MultiChange, Run, Step

UNKNOWN_TOOL = "str_replace_based_edit_tool"
"""A tool that some models were trained with, and that no harness offers."""
NEXT_OFFSET = re.compile(r"offset[= ](\d+)")
"""How all harnesses state where the next page of a file begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """One contestant."""

    agent: str
    """Its registered name."""
    title: str
    find: Callable[[str], ToolUse]
    """Return the call that searches all files for a regular expression."""
    files: Callable[[str], ToolUse]
    """Return the call that lists files by a pattern."""
    multi_change: Callable[[str, tuple[tuple[str, str], ...]], ToolUse] | None = None
    """Return the call that makes several replacements in a file; None: the harness has no such tool."""
    run: Callable[[ToolUse, Run], ToolUse]
    """Add the time limit to a call of the shell, or start it in the background."""
    unattended: tuple[str, ...] = ()
    """Arguments besides those of the kit, so that nothing is refused because nobody is there to approve it."""
    changed: str
    """Pattern at the beginning of the result of an edit, or of a written file, that was successful."""

    def format(self, part: ToolPart, workspace: Path) -> ToolUse:
        """Return the call for a part, as the kit of the agent has it."""
        block = kit_of(self.agent).format_tool_call(part, workspace)
        assert isinstance(block, ToolUse)
        return block


def compile_step(harness: Harness, step: Step, workspace: Path, offset: int | None = None) -> tuple[ToolUse, ...]:
    """Return the calls for a step. `offset` is the first line of a page."""
    match step:
        case Mistake(kind, inner):
            return tuple(_DEFORMATIONS[kind](call) for call in compile_step(harness, inner, workspace))
        case MultiChange(name, changes):
            if harness.multi_change is not None:
                return (harness.multi_change(_path(name, workspace), changes),)
            return tuple(harness.format(Edit(_path(name, workspace), old, new), workspace) for old, new in changes)
        case Find(pattern):
            return (harness.find(pattern),)
        case Files(pattern):
            return (harness.files(pattern),)
    return (_call(harness, step, workspace, offset),)


def _call(harness: Harness, step: Look | Change | Create | Run, workspace: Path, offset: int | None) -> ToolUse:
    match step:
        case Look(name):
            call = harness.format(Read(_path(name, workspace)), workspace)
            return call if offset is None else _with(call, {"offset": offset})
        case Change(name, old, new, wrong, _, wrong_new):
            edit = Edit(_path(name, workspace), wrong or old, (wrong and wrong_new) or new)
            return harness.format(edit, workspace)
        case Create(name, content):
            return harness.format(Write(_path(name, workspace), content), workspace)
        case Run(command):
            return harness.run(harness.format(Shell(_path(command, workspace)), workspace), step)


def _path(text: str, workspace: Path) -> str:
    return text.replace("{workspace}", str(workspace))


# -- mistakes


def _without_first(call: ToolUse) -> ToolUse:
    return replace(call, input=dict(list(call.input.items())[1:]))


def _with_lists(call: ToolUse) -> ToolUse:
    first, *others = call.input.items()
    return replace(call, input={first[0]: [first[1]], **dict(others)})


def _with_more(call: ToolUse) -> ToolUse:
    return replace(call, input={**call.input, "explanation": "I change this file, because the test fails."})


def _unclosed(call: ToolUse) -> ToolUse:
    return replace(call, raw_input=json.dumps(call.input)[:-1] + "<")


_DEFORMATIONS: Mapping[str, Callable[[ToolUse], ToolUse]] = {
    "unknown tool": lambda call: replace(call, name=UNKNOWN_TOOL),
    "missing argument": _without_first,
    "additional argument": _with_more,
    "wrong type": _with_lists,
    "invalid JSON": _unclosed,
}


def cut_off(call: ToolUse) -> ToolUse:
    """Return the call with the last tenth of its arguments missing, 8 characters at least."""
    arguments = json.dumps(call.input)
    return replace(call, raw_input=arguments[: -max(8, len(arguments) // 10)])


# -- contestants


def _in_background(command: str) -> str:
    return f"({command}) > background.log 2>&1 &"


def _native_run(call: ToolUse, step: Run) -> ToolUse:
    more: dict[str, Any] = {"background": True} if step.background else {}
    return _with(call, {**more, **({"timeout": step.seconds} if step.seconds else {})})


def _seconds_run(call: ToolUse, step: Run) -> ToolUse:
    return _with(_maybe_background(call, step), {"timeout": step.seconds} if step.seconds else {})


def _milliseconds_run(call: ToolUse, step: Run) -> ToolUse:
    return _with(_maybe_background(call, step), {"timeout": step.seconds * 1000} if step.seconds else {})


def _maybe_background(call: ToolUse, step: Run) -> ToolUse:
    return _with(call, {"command": _in_background(call.input["command"])}) if step.background else call


def _with(call: ToolUse, more: Mapping[str, Any]) -> ToolUse:
    return replace(call, input={**call.input, **more})


def _native_edits(name: str, changes: tuple[tuple[str, str], ...]) -> ToolUse:
    edits = [{"old_string": old, "new_string": new} for old, new in changes]
    return ToolUse("multi_edit", {"path": name, "edits": edits})


def _pi_edits(name: str, changes: tuple[tuple[str, str], ...]) -> ToolUse:
    return ToolUse("edit", {"path": name, "edits": [{"oldText": old, "newText": new} for old, new in changes]})


def _grep(pattern: str) -> ToolUse:
    return ToolUse("bash", {"command": f"grep -rnE --exclude-dir=.git -e {shlex.quote(pattern)} ."})


HARNESSES: tuple[Harness, ...] = (
    Harness(
        agent="native",
        title="amux-agent",
        find=lambda pattern: ToolUse("grep", {"pattern": pattern}),
        files=lambda pattern: ToolUse("glob", {"pattern": pattern}),
        multi_change=_native_edits,
        run=_native_run,
        changed=r"Edited |Created |Updated |No change needed",
    ),
    Harness(
        agent="pi",
        title="pi",
        find=_grep,
        files=lambda pattern: ToolUse("bash", {"command": f"find . -name {shlex.quote(pattern)}"}),
        multi_change=_pi_edits,
        run=_seconds_run,
        changed="Successfully ",
    ),
    Harness(
        agent="opencode",
        title="OpenCode",
        find=lambda pattern: ToolUse("grep", {"pattern": pattern}),
        files=lambda pattern: ToolUse("glob", {"pattern": f"**/{pattern}"}),
        run=_milliseconds_run,
        unattended=("--auto",),
        changed=r"Edit applied successfully|Wrote file successfully",
    ),
)
