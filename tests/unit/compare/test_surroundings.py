"""A trial has ports, a temporary directory and a configuration directory that no other trial has."""

from pathlib import Path

from agent_mux.compare.surroundings import trial_surroundings
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import ConfigDirectory
from agent_mux.worktrees.surroundings import PORT_COUNT

CONFIG = ConfigDirectory(
    variable="AGENT_HOME",
    path=lambda place: place.home_of("AGENT_HOME", ".agent"),
    credentials=("auth.json", "missing.json"),
    settings=("settings.json", "sub/more.toml", "none"),
)


def test_surroundings_are_separate_and_removed(tmp_path: Path) -> None:
    source = tmp_path / ".agent"
    (source / "sub").mkdir(parents=True)
    for name in ("auth.json", "settings.json", "sub/more.toml", "history"):
        (source / name).write_text(name)
    place = AgentPaths(environ={"HOME": str(tmp_path)})
    with trial_surroundings(CONFIG, place) as one, trial_surroundings(CONFIG, place) as two:
        config = Path(one.environ["AGENT_HOME"])
        assert sorted(path.name for path in config.iterdir()) == ["auth.json", "settings.json", "sub"]
        assert (config / "auth.json").resolve() == source / "auth.json"
        (config / "settings.json").write_text("changed")
        assert (source / "settings.json").read_text() == "settings.json"
        assert one.environ["TMPDIR"] == one.environ["TMP"] != two.environ["TMPDIR"]
        assert Path(one.environ["TMPDIR"]).stat().st_mode & 0o777 == 0o700
        assert one.environ["PORT"] == one.environ["AMUX_PORT"] == str(one.ports.start)
        assert not set(one.ports) & set(two.ports)
        assert len(one.ports) == int(one.environ["AMUX_PORT_COUNT"]) == PORT_COUNT
    assert not one.directory.exists()
    assert (source / "auth.json").read_text() == "auth.json"


def test_agent_without_a_variable_gets_no_configuration_directory(tmp_path: Path) -> None:
    with trial_surroundings(None, AgentPaths(environ={"HOME": str(tmp_path)})) as one:
        assert [path.name for path in one.directory.iterdir()] == ["tmp"]
