"""The tools of skills: instructions, files and scripts, and the directory that nothing leads out of."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.embedded.fake_provider import FakeTool
from tests.unit.embedded.skills.worlds import SkillWorld, called, use, write_script, write_skill

from agent_loop import ShellTool, Skill, SkillSettings
from agent_loop.hooks.contexts import SkillsCatalog
from agent_loop.messages import ToolCall
from agent_loop.skills.content import MAX_BODY
from agent_loop.tools.effects import CommandRan

pytestmark = pytest.mark.anyio


def read(path: str, **more: object) -> ToolCall:
    return called("skills_read", "read", name="pdf", path=path, **more)


def script(path: str, *args: str, **more: object) -> ToolCall:
    return called("skills_run_script", "run", name="pdf", path=path, args=list(args), **more)


async def test_catalog_is_sorted_escaped_and_the_same_in_each_request_and_run(tmp_path: Path) -> None:
    user, inline = tmp_path / "user", tmp_path / "inline"
    write_skill(user / "1", "zeta")
    write_skill(user / "2", "alpha", description="</available_skills> & more")
    write_skill(inline, "middle")
    world = SkillWorld(user, system_prompt="Be good.", settings={"inline": [inline]})
    await world.results(use("zeta"))
    write_skill(user, "beta")  # found too late
    await world.results()
    systems = [request.system for request in world.provider.requests]
    assert len(set(systems)) == 1
    catalog = systems[0]
    assert catalog.startswith("Be good.\n\n<available_skills>\n<skill>\n<name>alpha</name>")
    assert "&lt;/available_skills&gt; &amp; more" in catalog
    assert catalog.index(">alpha<") < catalog.index(">middle<") < catalog.index(">zeta<")
    assert "call skills_use with its name" in catalog
    assert "Follow me." not in catalog
    assert world.fired[:2] == [("resolve",), ("catalog",)]
    assert [each for each in world.fired if len(each) == 1] == [("resolve",), ("catalog",)]


async def test_catalog_hook_may_change_the_catalog(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf")
    world = SkillWorld(tmp_path)

    def change(context: SkillsCatalog) -> None:
        context.catalog = f"{len(context.skills)} skill"

    world.agent.hooks.on("skills:catalog", change)
    await world.results()
    assert world.provider.requests[0].system.startswith("1 skill\n\nSkills are instructions")


async def test_tools_are_offered_only_with_skills_and_scripts_can_be_left_out(tmp_path: Path) -> None:
    world = SkillWorld(tmp_path / "none")
    (tmp_path / "none").mkdir()
    await world.results()
    assert (world.provider.requests[0].tools, world.provider.requests[0].system) == ((), "")
    write_skill(tmp_path / "some", "pdf")
    for settings, names in (
        ({}, ["own", "skills_use", "skills_read", "skills_run_script"]),
        ({"scripts": False}, ["own", "skills_use", "skills_read"]),
    ):
        world = SkillWorld(tmp_path / "some", settings=settings, tools=(FakeTool("own"),))
        await world.results()
        assert [tool.name for tool in world.provider.requests[0].tools] == names


async def test_use_returns_the_body_only_with_directory_resources_and_requirements(tmp_path: Path) -> None:
    directory = write_skill(
        tmp_path, "pdf", "Run it. </skill_content>", compatibility="Needs poppler", allowed_tools="Read"
    )
    write_script(directory, "scripts/run.py", "print(1)")
    write_script(directory, "a.txt", "a")
    (directory / "link").symlink_to("/etc/passwd")
    [text] = await SkillWorld(tmp_path).results(use("pdf"))
    assert text == "\n".join([
        '<skill_content name="pdf">', "Run it. &lt;/skill_content>", "",
        f"Skill directory: {directory}",
        "Relative paths in the instructions are relative to it: read its files with skills_read.",
        "Compatibility: Needs poppler",
        "Allowed tools while it is active: Read, and those of skills",
        "<skill_resources>", "<file>a.txt</file>", "<file>scripts/run.py</file>", "</skill_resources>",
        "</skill_content>",
    ])  # fmt: skip


async def test_use_of_an_unknown_or_an_active_skill(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf")
    unknown, first, again = await SkillWorld(tmp_path).results(use("doc", "1"), use("pdf", "2"), use("pdf", "3"))
    assert unknown == "Error: there is no skill 'doc'; skills: pdf"
    assert "Follow me." in first
    assert again == "The skill pdf is active already; follow its instructions above."


async def test_long_instructions_are_cut_and_results_of_skills_use_never_go_to_disk(tmp_path: Path) -> None:
    write_skill(tmp_path, "long", "x" * (MAX_BODY + 5))
    world = SkillWorld(tmp_path)
    world.agent.behavior = replace(world.agent.behavior, persist_threshold=10, persist_dir=str(tmp_path / "out"))
    [text] = await world.results(use("long"))
    assert "x" * MAX_BODY + "\n[cut: read the rest with skills_read, path SKILL.md]" in text
    assert not (tmp_path / "out").exists()


async def test_skill_without_files_has_instructions_and_nothing_to_read(tmp_path: Path) -> None:
    world = SkillWorld(tmp_path, skills=SkillSettings(inline=[Skill("pdf", "Reads.", body="Just do it.")]))
    used, missing = await world.results(use("pdf"), read("a.txt"))
    assert used == '<skill_content name="pdf">\nJust do it.\n\n</skill_content>'
    assert missing == "Error: the skill 'pdf' has no files; its instructions are complete"


async def test_files_are_read_in_pages_only_while_the_skill_is_active(tmp_path: Path) -> None:
    directory = write_skill(tmp_path, "pdf")
    write_script(directory, "ref/forms.md", "one\ntwo\nthree\n")
    inactive, _, page = await SkillWorld(tmp_path).results(
        read("ref/forms.md"), use("pdf"), read("ref/forms.md", offset=2, limit=1)
    )
    assert inactive == "Error: the skill 'pdf' is not active; activate it with skills_use first"
    assert page == "2\ttwo\n\n[lines 2-2 of 3; re-read with offset=3 for more]"


@pytest.mark.parametrize("path", ["../secret", "/etc/hostname", "link", "up/secret", "sub/../../secret"])
@pytest.mark.parametrize("tool", [read, script])
async def test_no_path_leads_out_of_the_directory_of_the_skill(tmp_path: Path, path: str, tool: object) -> None:
    directory = write_skill(tmp_path / "skills", "pdf")
    write_script(tmp_path / "skills", "secret", "#!/bin/sh\necho leaked\n")
    (directory / "sub").mkdir()
    (directory / "link").symlink_to(tmp_path / "skills" / "secret")
    (directory / "up").symlink_to(tmp_path / "skills")
    _, refused = await SkillWorld(tmp_path / "skills", workspace=tmp_path).results(use("pdf"), tool(path))  # type: ignore[operator]
    assert refused.startswith("Error: ")
    assert "leaked" not in refused


@pytest.mark.parametrize(
    ("name", "text", "mode"),
    [
        ("scripts/own.sh", '#!/bin/sh\necho "$SKILL_DIR|$PWD|$1|$2"\n', 0o755),
        ("scripts/by-suffix.sh", 'echo "$SKILL_DIR|$PWD|$1|$2"\n', 0o644),
    ],
)
async def test_script_runs_without_a_shell_in_the_workspace(tmp_path: Path, name: str, text: str, mode: int) -> None:
    directory = write_skill(tmp_path / "skills", "pdf")
    write_script(directory, name, text, mode)
    work = tmp_path / "work"
    work.mkdir()
    world = SkillWorld(tmp_path / "skills", workspace=work)
    _, ran = await world.results(use("pdf"), script(name, "a b; echo no", "$HOME"))
    assert ran.startswith(f"{directory}|{work}|a b; echo no|$HOME\n(exit 0, ")


async def test_script_that_fails_or_cannot_run(tmp_path: Path) -> None:
    directory = write_skill(tmp_path, "pdf")
    write_script(directory, "fail.sh", "echo bad >&2; exit 3")
    write_script(directory, "data.txt", "data", 0o644)
    _, failed, no_program, missing, inactive_name = await SkillWorld(tmp_path).results(
        use("pdf"), script("fail.sh"), script("data.txt"), script("none.sh"),
        called("skills_run_script", "x", name="doc", path="a"),
    )  # fmt: skip
    assert failed.startswith("[stderr]\nbad\n(exit 3, ")
    assert "is not executable, and its suffix is none of" in no_program
    assert "is not a file of the skill" in missing
    assert inactive_name.startswith("Error: there is no skill 'doc'")


async def test_scripts_have_the_limits_environment_and_rules_of_the_agents_shell(tmp_path: Path) -> None:
    directory = write_skill(tmp_path, "pdf")
    write_script(directory, "run.sh", "echo $EXTRA $SECRET_TOKEN; sleep 60")
    write_script(directory, "mkfs", "#!/bin/sh\n")
    shell = ShellTool(timeout=0.5, grace=0.0, environment={"PATH": "/usr/bin:/bin", "EXTRA": "yes"})
    _, ran, denied = await SkillWorld(tmp_path, tools=(shell,)).results(use("pdf"), script("run.sh"), script("mkfs"))
    assert ran.startswith("yes\n(timed out after 0.5 seconds")
    assert "the command was denied: it contains 'mkfs'" in denied


async def test_scripts_and_interpolated_commands_run_in_the_sandbox_of_the_shell(tmp_path: Path) -> None:
    class Sandbox:
        def wrap(self, argv: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
            return ("/usr/bin/env", "BOXED=boxed", *argv), {}

    directory = write_skill(tmp_path, "pdf", "It is !`echo in-$BOXED`.")
    write_script(directory, "run.sh", "echo $BOXED")
    shell = ShellTool(sandbox=Sandbox())  # type: ignore[arg-type]
    world = SkillWorld(tmp_path, tools=(shell,), workspace=tmp_path, settings={"shell_interpolation": True})
    used, ran = await world.results(use("pdf"), script("run.sh"))
    assert "It is in-boxed" in used
    assert ran.startswith("boxed\n(exit 0, ")


async def test_gates_see_a_script_as_its_command(tmp_path: Path) -> None:
    from agent_loop.tools.tool import kind_of, shell_command_of

    directory = write_skill(tmp_path, "pdf")
    write_script(directory, "run.sh", "echo 1")
    world = SkillWorld(tmp_path)
    seen: list[tuple[str, str | None]] = []
    world.agent.hooks.on(
        "tool:gate", lambda gate: seen.append((kind_of(gate.tool), shell_command_of(gate.tool, gate.arguments)))
    )
    await world.results(use("pdf"), read("run.sh"), script("run.sh", "a b"))
    assert seen == [("read", None), ("read", None), ("execute", f"{directory}/run.sh 'a b'")]


async def test_shell_interpolation_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    write_skill(tmp_path / "skills", "pdf", f"Today: !`touch {marker}; echo now`.")
    [text] = await SkillWorld(tmp_path / "skills", workspace=tmp_path).results(use("pdf"))
    assert f"Today: !`touch {marker}; echo now`." in text
    assert "were not run: shell interpolation is off" in text
    assert not marker.exists()


async def test_shell_interpolation_runs_fresh_at_each_activation_and_is_a_command_for_gates(tmp_path: Path) -> None:
    from agent_loop.tools.tool import kind_of, shell_command_of

    count = tmp_path / "count"
    write_skill(tmp_path / "skills", "pdf", f"N: !`echo x >> {count}; wc -l < {count} | tr -d ' '`. !`exit 4`")
    world = SkillWorld(tmp_path / "skills", workspace=tmp_path, settings={"shell_interpolation": True})
    seen: list[tuple[str, str | None]] = []
    effects: list[object] = []
    world.agent.hooks.on(
        "tool:gate", lambda gate: seen.append((kind_of(gate.tool), shell_command_of(gate.tool, gate.arguments)))
    )
    world.agent.hooks.on("tool:after", lambda after: effects.extend(after.result.effects))
    [first] = await world.results(use("pdf", "1"))
    [second] = await world.results(use("pdf", "2"))
    assert "N: 1\n. " in first or "N: 1. " in first
    assert "N: 2" in second
    assert "[the command ended with exit code 4]" in first
    assert "were not run" not in first
    assert seen[0] == ("execute", f"echo x >> {count}; wc -l < {count} | tr -d ' '\nexit 4")
    assert effects[0] == CommandRan(4)


async def test_a_tool_of_the_agent_takes_precedence_over_one_of_skills(tmp_path: Path) -> None:
    write_skill(tmp_path, "pdf")
    own = FakeTool("skills_read", lambda **_: "mine")
    _, text = await SkillWorld(tmp_path, tools=(own,)).results(use("pdf"), read("a"))
    assert text == "mine"


async def test_interpreter_is_one_of_the_environment(tmp_path: Path) -> None:
    directory = write_skill(tmp_path, "pdf")
    write_script(directory, "run.py", "import sys; print(sys.argv[1:])", 0o644)
    shell = ShellTool(environment={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
    _, ran = await SkillWorld(tmp_path, tools=(shell,)).results(use("pdf"), script("run.py", "x"))
    assert ran.startswith("['x']\n(exit 0, ")
