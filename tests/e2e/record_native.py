"""Record the embedded agent: `python -m agent_mux_testing.offline -- python -m tests.e2e.record_native [SCENARIO...]`.

The agent is part of this repository, so each of its versions is recorded again. Provision it first. Afterwards run
`AMUX_UPDATE_GOLDENS=1 pytest tests/conformance/test_native.py`, and review the goldens.
"""

import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import msgspec
from tests.e2e.harness import LiveAgent
from tests.e2e.native_scenes import SCENES, Scene, Steps, two_prompts

from agent_mux import AgentMux
from agent_mux.journal.records import Header
from agent_mux_testing.conformance.recorded import RUN_ID
from agent_mux_testing.fixtures import write_fixture
from agent_mux_testing.model_server import Script, ScriptStep
from agent_mux_testing.provision import find_agent
from agent_mux_testing.recorder import NEUTRAL_HOME, NEUTRAL_PROJECT, NEUTRAL_TEMP, Neutral, fixture_from_journal

FIXTURES = Path(__file__).parents[2] / "fixtures"
URL = "http://127.0.0.1:8080"
PLAIN = frozenset({"PATH", "HOME", "TERM", "LANG"})
"""Variables that every agent has."""


async def play(live: LiveAgent, scene: Scene, **more: Any) -> Path:
    """Run the agent in this scene, and return the journal."""
    live.script(*scene.model(live))
    options = {**scene.options(live), **more}
    prompt = "say it" if scene.drive is two_prompts else "do the thing"
    start = live.options(prompt, **options)
    own = {name: value.format(url=live.model.url) for name, value in scene.environment.items()}

    with anyio.fail_after(live.kit.patience):
        async with AgentMux(config_dir=live.config_directory) as mux:
            run = mux.run(replace(start, env={**start.env, **own}))
            await scene.drive(live, run)
            result = await run
    assert result.journal is not None
    return Path(result.journal)


async def record(name: str, scene: Scene) -> None:
    """Play a scene, and write its recording as a fixture."""
    found = find_agent("native")
    assert found is not None, "the embedded agent is not provisioned"
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        live = LiveAgent(found, Path(directory), stack)
        scene.prepare(live)
        more = {}
        if scene.before is not None:
            first = await play(live, scene.before)
            [session] = (live.home / "agent" / "sessions").glob("[!.]*.json")
            assert first.exists()
            more = {scene.resume_option: session.stem}
        journal = await play(live, scene, **more)

        def neutral(header: Header) -> Neutral:
            return Neutral(
                {
                    tempfile.gettempdir(): NEUTRAL_TEMP,
                    str(live.home): NEUTRAL_HOME,
                    str(live.workspace): NEUTRAL_PROJECT,
                },
                {header.stream.run_id: RUN_ID, live.model.url: URL},
            )

        fixture = fixture_from_journal(
            journal, scenario=name, version=found.version, two_way=True, note=scene.note, neutral=neutral
        )
        script = msgspec.to_builtins(Script(steps=tuple(flat(scene.model(live)))))
        variables = {name: value for name, value in fixture.environment.items() if name not in PLAIN}
        fixture = replace(fixture, script={"steps": script["steps"]}, settings={}, environment=variables)
        write_fixture(fixture, FIXTURES / fixture.name)
        sys.stdout.write(f"{name}: {len(fixture.stdout_lines)} lines, exit {fixture.exit}\n")
        sys.stdout.flush()


def flat(steps: tuple[ScriptStep | Steps, ...]) -> list[ScriptStep]:
    return [inner for step in steps for inner in (step if isinstance(step, tuple) else (step,))]


async def main(names: list[str]) -> None:
    for name in names or SCENES:
        await record(name, SCENES[name])


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
