"""Who runs this process: an agent, a CI system, or a person. The environment says it. Source: run API, section 8."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent_mux.registry import AdapterRegistry

_CI = {
    "GITHUB_ACTIONS": "GitHub Actions",
    "GITLAB_CI": "GitLab CI",
    "BUILDKITE": "Buildkite",
    "CIRCLECI": "CircleCI",
    "JENKINS_URL": "Jenkins",
    "TF_BUILD": "Azure Pipelines",
    "TEAMCITY_VERSION": "TeamCity",
    "BITBUCKET_BUILD_NUMBER": "Bitbucket Pipelines",
    "CI": "a CI system",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An agent or a CI system whose signs are in the environment."""

    kind: str
    """`agent` or `ci`."""
    name: str
    """Of the agent, as it is registered; of the CI system."""
    variable: str
    """That says so."""


def detect_hosts(adapters: AdapterRegistry, environ: Mapping[str, str]) -> list[Host]:
    """Everybody whose signs are there: agents run each other."""
    homes = {adapter.agent: adapter.home() for adapter in adapters}
    there = {name: home for name, home in homes.items() if any(map(environ.get, home.host_variables))}
    imitated = {variable for home in there.values() for variable in home.imitates}
    agents = [
        Host(kind="agent", name=name, variable=variable)
        for name, home in there.items()
        for variable in home.host_variables
        if environ.get(variable) and variable not in imitated
    ]
    first = list({host.name: host for host in reversed(agents)}.values())[::-1]
    systems = [Host(kind="ci", name=name, variable=variable) for variable, name in _CI.items() if environ.get(variable)]
    return [*first, *systems[:1]]
