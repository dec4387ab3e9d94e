"""All there is to know of models, on one object. Source: run API, section 5."""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mux._util.paths import config_dir
from agent_mux.errors import AgentMuxError
from agent_mux.models.listings import CachedListing, ListingCache, merge_listing
from agent_mux.models.matching import CostEstimator, ModelMatch, match_model
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import ModelCapabilities
from agent_mux.sdk.registry import AdapterRegistry

if TYPE_CHECKING:
    from agent_mux.models.current import CurrentModel
    from agent_mux.settings.resolver import OptionsResolver

_Models = tuple[ModelCapabilities, ...]
LISTING_TIMEOUT = 30.0  # seconds; listings that ask the network take a few


def _now() -> datetime:
    return datetime.now(UTC)


class Models(CostEstimator):
    """The models that the agents offer: from what comes with agent-mux, and from what the agents said themselves.

    Blocking. Reads two small files at most; only `refresh` starts anything.
    """

    def __init__(
        self,
        adapters: AdapterRegistry | None = None,
        *,
        directory: Path | None = None,
        environ: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = _now,
        defaults: "OptionsResolver | None" = None,
    ) -> None:
        """Know these adapters; keep answers below `directory` (default: `~/.agent-mux`).

        `environ` is what agents are asked in (default: ours); `now` tells the time that answers are kept with;
        `defaults` are those of a client's runs (default: those of the files).
        """
        self.adapters = adapters if adapters is not None else AdapterRegistry()
        self._directory = directory if directory is not None else config_dir()
        self._listed = ListingCache(self._directory)
        self._defaults = defaults
        self._environ = environ
        self._now = now

    def list(self, agent: str | None = None) -> _Models:
        """The models that an agent offers: those that it listed itself, else those that come with agent-mux.

        Without one, those of all agents, each name once. Raises AGENT_NOT_FOUND.
        """
        if agent is None:
            offered = (model for models in self.catalog().values() for model in models)
            return tuple({model.model_id: model for model in offered}.values())
        adapter = self.adapters.get(agent)
        listed = self._listed.read(adapter.agent)
        return adapter.models() if listed is None else self._offered(adapter, listed)

    def catalog(self) -> dict[str, _Models]:
        """The models of every agent of which some are known."""
        listed = ((adapter.agent, self.list(adapter.agent)) for adapter in self.adapters)
        return {agent: models for agent, models in listed if models}

    def get(self, agent: str, model: str) -> ModelCapabilities:
        """The model that a name means. Raises AGENT_NOT_FOUND, VALIDATION_ERROR with the nearest names."""
        verdict = self.validate(agent, model)
        if verdict.model is None:
            raise AgentMuxError("VALIDATION_ERROR", verdict.sentence(self.adapters.get(agent).agent))
        return verdict.model

    def default(self, agent: str) -> str | None:
        """The model that the adapter chooses where nobody does; None: it leaves that to the agent."""
        return self.adapters.get(agent).default_model

    def current(self, agent: str, *, project: Path | None = None) -> "CurrentModel":
        """The model that a run would use which names none, and who says so.

        `project` is the directory of the run; default: the current one. Raises AGENT_NOT_FOUND, and CONFIG_ERROR where
        the agent's files cannot be read.
        """
        from agent_mux.agents.config.client import AgentConfigs  # noqa: PLC0415  # for this alone
        from agent_mux.agents.installations import InstallationResolver  # noqa: PLC0415
        from agent_mux.models.current import current_model  # noqa: PLC0415
        from agent_mux.settings.resolver import OptionsResolver  # noqa: PLC0415

        adapter = self.adapters.get(agent)
        homes = InstallationResolver(self.adapters, environ=self._environ, project=project)
        defaults = self._defaults or OptionsResolver(
            {}, self.adapters, config_dir=self._directory, project_config_dir=None
        )
        settled = defaults.settle({"agent": adapter.agent, "cwd": project})
        return current_model(adapter, settled, self._directory, AgentConfigs(homes).model)

    def validate(self, agent: str, model: str) -> ModelMatch:
        """Whether a name is that of a model of this agent, and which. A run passes unknown ones on all the same.

        Raises AGENT_NOT_FOUND.
        """
        return match_model(self._known(self.adapters.get(agent)), model)

    def refresh(self, agent: str, *, timeout: float = LISTING_TIMEOUT) -> _Models:
        """Ask the agent itself, keep what it says, and return it with what is known besides.

        Whatever goes wrong, what was known before stays. Raises AGENT_NOT_FOUND and what
        `agent_mux.models.ask_agent.ask_for_models` raises; CONFIG_ERROR, CONFIG_LOCK_ERROR where it cannot be kept.
        """
        from agent_mux.models.ask_agent import ask_for_models  # noqa: PLC0415  # who only reads does without

        adapter = self.adapters.get(agent)
        environ = os.environ if self._environ is None else self._environ
        said = ask_for_models(adapter, environ, timeout=timeout)
        listed = CachedListing(agent=adapter.agent, at=self._now().replace(microsecond=0), models=said)
        self._listed.write(listed)
        return self._offered(adapter, listed)

    def can_refresh(self, agent: str) -> bool:
        """Whether the agent has a command that lists its models."""
        return self.adapters.get(agent).model_listing is not None

    def is_listed_by_agent(self, agent: str) -> bool:
        """Whether `list` has what the agent said itself."""
        return self._listed.read(self.adapters.get(agent).agent) is not None

    def last_updated(self, agent: str) -> datetime | None:
        """When the agent was last asked; else the day of what comes with agent-mux, in UTC; None: nothing is known."""
        adapter = self.adapters.get(agent)
        listed = self._listed.read(adapter.agent)
        if listed is not None:
            return listed.at
        days = [model.as_of for model in adapter.models() if model.as_of is not None]
        return datetime.combine(min(days), time(), UTC) if days else None

    def _offered(self, adapter: Adapter, listed: CachedListing) -> _Models:
        takes_more = adapter.model_listing is not None and not adapter.model_listing.is_complete
        return _with_rest(listed, adapter.models()) if takes_more else merge_listing(listed, adapter.models())

    def _known(self, adapter: Adapter) -> _Models:
        """What it listed, and then all that comes with agent-mux: it may have been asked with another key."""
        listed = self._listed.read(adapter.agent)
        return adapter.models() if listed is None else _with_rest(listed, adapter.models())


def _with_rest(listed: CachedListing, known: _Models) -> _Models:
    said = merge_listing(listed, known)
    names = {model.model_id for model in said}
    return (*said, *(model for model in known if model.model_id not in names))
