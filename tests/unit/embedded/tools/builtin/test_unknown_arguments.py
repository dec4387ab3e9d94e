"""An argument that a built-in tool does not have is an error: a model must not believe that it was used."""

from pathlib import Path

import pytest
from tests.unit.embedded.tools.builtin.file_calls import Files

from agent_loop.errors import InvalidArgumentsError
from agent_loop.skills.tools import ReadSkillTool, RunScriptTool, UseSkillTool
from agent_loop.tools.builtin import default_tools
from agent_loop.tools.validation import validate_arguments

CLASSES = {tool.name: tool for tool in (*default_tools(), UseSkillTool, ReadSkillTool, RunScriptTool)}


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - {"multi_edit"}))
def test_schema_refuses_them(name: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=r"unknown argument 'nonsense' \(it takes "):
        validate_arguments(CLASSES[name].parameters, {"nonsense": 1})


@pytest.mark.anyio
@pytest.mark.parametrize(("more", "inner"), [({"nonsense": 1}, {}), ({}, {"nonsense": 1})])
async def test_multi_edit_refuses_them_itself(tmp_path: Path, more: dict[str, int], inner: dict[str, int]) -> None:
    files = Files(tmp_path)
    files.put("a", "one\n")
    with pytest.raises(InvalidArgumentsError, match="unknown field `nonsense`"):
        await files.call("multi_edit", path="a", edits=[{"old_string": "one", "new_string": "two", **inner}], **more)
    assert files.get("a") == b"one\n"
