"""The model registry: the models that each agent offers. See docs/spec/run-api.md, section 5."""

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
LISTING_TIMEOUT = 30.0  # seconds; listings that use the network take a few


def _now() -> datetime:
    return datetime.now(UTC)


class Models(CostEstimator):
    """The models that the agents offer: those that come with agent-mux, and those that the agents listed themselves.

    Blocking. Reads at most two small files; only `refresh` starts a process.
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
        """Create a registry.

        Args:
            adapters: Default: the registered adapters.
            directory: Where listings are cached; default: `~/.agent-mux`.
            environ: The environment of listing commands; default: that of this process.
            now: Returns the time that is stored with a listing.
            defaults: Resolves the options of a client's runs; default: from settings files only.
        """
        self.adapters = adapters if adapters is not None else AdapterRegistry()
        self._directory = directory if directory is not None else config_dir()
        self._listings = ListingCache(self._directory)
        self._defaults = defaults
        self._environ = environ
        self._now = now

    def list(self, agent: str | None = None) -> _Models:
        """Return the models that an agent listed itself, or else those that come with agent-mux.

        Without an agent: the models of all agents, each name once. Raises AGENT_NOT_FOUND.
        """
        if agent is None:
            offered = (model for models in self.catalog().values() for model in models)
            return tuple({model.model_id: model for model in offered}.values())
        adapter = self.adapters.get(agent)
        listing = self._listings.read(adapter.agent)
        return adapter.models() if listing is None else self._offered(adapter, listing)

    def catalog(self) -> dict[str, _Models]:
        """Return the models of each agent that has any, by agent."""
        offered = ((adapter.agent, self.list(adapter.agent)) for adapter in self.adapters)
        return {agent: models for agent, models in offered if models}

    def get(self, agent: str, model: str) -> ModelCapabilities:
        """Return the model that a name means. Raises AGENT_NOT_FOUND, VALIDATION_ERROR with similar names."""
        verdict = self.validate(agent, model)
        if verdict.model is None:
            raise AgentMuxError("VALIDATION_ERROR", verdict.sentence(self.adapters.get(agent).agent))
        return verdict.model

    def default(self, agent: str) -> str | None:
        """Return the model that the adapter selects for runs without one; None: the agent selects it."""
        return self.adapters.get(agent).default_model

    def current(self, agent: str, *, project: Path | None = None) -> "CurrentModel":
        """Return the model of a run that names none, and where it is set.

        `project` is the directory of the run; default: the current one. Raises AGENT_NOT_FOUND, and CONFIG_ERROR if
        the agent's files cannot be read.
        """
        from agent_mux.agents.config.client import AgentConfigs  # noqa: PLC0415  # needed by this method only
        from agent_mux.agents.installations import InstallationResolver  # noqa: PLC0415
        from agent_mux.models.current import current_model  # noqa: PLC0415
        from agent_mux.settings.resolver import OptionsResolver  # noqa: PLC0415

        adapter = self.adapters.get(agent)
        installations = InstallationResolver(self.adapters, environ=self._environ, project=project)
        defaults = self._defaults or OptionsResolver(
            {}, self.adapters, config_dir=self._directory, project_config_dir=None
        )
        resolved = defaults.resolve({"agent": adapter.agent, "cwd": project})
        return current_model(adapter, resolved, self._directory, AgentConfigs(installations).model)

    def validate(self, agent: str, model: str) -> ModelMatch:
        """Match a name with the models of an agent. Runs pass unknown names to the agent anyway.

        Raises AGENT_NOT_FOUND.
        """
        return match_model(self._known(self.adapters.get(agent)), model)

    def refresh(self, agent: str, *, timeout: float = LISTING_TIMEOUT) -> _Models:
        """Run the agent's own listing command, cache the listing, and return the models as `list` does.

        If it fails, the previous listing is kept. Raises AGENT_NOT_FOUND and what
        `agent_mux.models.ask_agent.ask_for_models` raises; CONFIG_ERROR, CONFIG_LOCK_ERROR if it cannot be stored.
        """
        from agent_mux.models.ask_agent import ask_for_models  # noqa: PLC0415  # readers do not need it

        adapter = self.adapters.get(agent)
        environ = os.environ if self._environ is None else self._environ
        models = ask_for_models(adapter, environ, timeout=timeout)
        listing = CachedListing(agent=adapter.agent, at=self._now().replace(microsecond=0), models=models)
        self._listings.write(listing)
        return self._offered(adapter, listing)

    def can_refresh(self, agent: str) -> bool:
        """Return whether the agent has a command that lists its models."""
        return self.adapters.get(agent).model_listing is not None

    def is_listed_by_agent(self, agent: str) -> bool:
        """Return whether `list` returns models that the agent listed itself."""
        return self._listings.read(self.adapters.get(agent).agent) is not None

    def last_updated(self, agent: str) -> datetime | None:
        """Return the time of the last listing, or the date of the included models (UTC); None without either."""
        adapter = self.adapters.get(agent)
        listing = self._listings.read(adapter.agent)
        if listing is not None:
            return listing.at
        days = [model.as_of for model in adapter.models() if model.as_of is not None]
        return datetime.combine(min(days), time(), UTC) if days else None

    def _offered(self, adapter: Adapter, listing: CachedListing) -> _Models:
        accepts_more = adapter.model_listing is not None and not adapter.model_listing.is_complete
        return _with_included(listing, adapter.models()) if accepts_more else merge_listing(listing, adapter.models())

    def _known(self, adapter: Adapter) -> _Models:
        """Return the listed models, then the other included ones: another key may have been used for the listing."""
        listing = self._listings.read(adapter.agent)
        return adapter.models() if listing is None else _with_included(listing, adapter.models())


def _with_included(listing: CachedListing, included: _Models) -> _Models:
    """Return the listed models, then those that come with agent-mux and are not listed."""
    listed = merge_listing(listing, included)
    names = {model.model_id for model in listed}
    return (*listed, *(model for model in included if model.model_id not in names))
