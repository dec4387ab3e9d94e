"""The real CLIs in the surroundings of a trial: their own configuration directory."""

from pathlib import Path

import pytest
from tests.e2e.harness import LiveAgent
from tests.e2e.ways import ALL_AGENTS

from agent_mux.compare.surroundings import trial_surroundings
from agent_mux.sdk.config import AgentPaths
from agent_mux_testing.live import Say, Shell

pytestmark = pytest.mark.anyio


def files_below(top: Path) -> set[str]:
    return {str(path.relative_to(top)) for path in top.rglob("*") if not path.is_dir()}


@ALL_AGENTS
async def test_agent_uses_the_configuration_directory_of_its_trial(live: LiveAgent) -> None:
    config = live.adapter.installation().config_directory
    if config is None:
        pytest.skip("the agent has no variable for its configuration directory")
    live.script(live.answer(Shell("echo changed > file")), live.answer(Say("All done.")))
    place = AgentPaths(environ={"HOME": str(live.home), **live.launch.environment})
    with trial_surroundings(config, place) as surroundings:
        done = await live.run(env=dict(surroundings.environ))
        assert done.result.exit_reason == "completed"
        assert live.file("file").read_text() == "changed\n"
        own = files_below(Path(surroundings.environ[config.variable]))
        assert own - {*config.credentials, *config.settings}  # what the agent itself keeps there
    assert not surroundings.directory.exists()
