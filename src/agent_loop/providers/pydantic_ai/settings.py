"""Model settings in the form of each vendor's API.

- Thinking: Claude, at Anthropic and on Bedrock, gets a budget of at least 1,024 tokens. Claude models with adaptive
  thinking, and other vendors' models, get the level as an effort. Gemini 2.5 gets a budget, at least its minimum.
- A budget that does not fit below `max_tokens` is added to it: `max_tokens` limits the answer itself.
- Anthropic rejects a forced tool call together with a thinking budget: thinking is off in such a request.
- Cache breakpoints: at Anthropic, Bedrock and OpenRouter, as `CacheSettings` states; OpenAI and Google cache by
  themselves.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings as NativeSettings

from agent_loop.providers.provider import THINKING_TOKENS, ModelRequest, ModelSettings, ThinkingLevel

Fields = dict[str, Any]
ANTHROPIC_MINIMUM = 1024
"""Smallest `budget_tokens` that Anthropic accepts."""
GEMINI_MINIMA: Mapping[str, int] = {"gemini-2.5-pro": 128, "gemini-2.5-flash-lite": 512}
"""Prefix of the model name -> smallest `thinkingBudget` in tokens."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The settings that differ between vendors."""

    thinking: Callable[[ModelSettings, Model], Fields]
    api: str
    """The name of the API, for records."""
    cache_prefix: str = ""
    """Prefix of pydantic-ai's cache settings; empty if the vendor supports no breakpoints."""
    thinks_when_forced: bool = True
    """Whether thinking can be combined with a forced tool call."""
    extra: Fields | None = None
    takes_retries: bool = True
    """Whether retries are set per request; otherwise they are set in the client."""


def native_settings(request: ModelRequest, model: Model, dialect: Dialect) -> NativeSettings:
    """Return the settings of this request, with the client's own retries disabled: only the loop retries."""
    settings = request.settings
    choice = _tool_choice(request, model)
    fields: Fields = {
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "top_k": settings.top_k,
        "request_timeout": settings.timeout,
        "parallel_tool_calls": settings.parallel_tool_calls if request.tools else None,
        "tool_choice": choice,
        "max_retries": 0 if dialect.takes_retries else None,
        **(dialect.extra or {}),
        **_cache(settings, dialect),
    }
    is_forced = choice is not None and choice not in ("auto", "none")
    if dialect.thinks_when_forced or not is_forced:
        fields |= dialect.thinking(settings, model)
    return cast("NativeSettings", {name: value for name, value in fields.items() if value is not None})


def _tool_choice(request: ModelRequest, model: Model) -> Any:
    if not request.tools:
        return None
    choice = request.tool_choice
    if choice in {"auto", "none"}:
        return choice
    if not model.profile.get("supports_forced_tool_choice", True):
        return "auto"
    return choice if choice == "required" else [choice]


def _cache(settings: ModelSettings, dialect: Dialect) -> Fields:
    if not dialect.cache_prefix:
        return {}
    enabled = {
        "instructions": settings.cache.system,
        "tool_definitions": settings.cache.tools,
        "messages": settings.cache.messages,
    }
    return {f"{dialect.cache_prefix}_cache_{place}": True for place, is_wanted in enabled.items() if is_wanted}


# -- thinking -------------------------------------------------------------------------------------------------------


def level_of(settings: ModelSettings) -> ThinkingLevel | None:
    """Return the thinking level for vendors without budgets: the lowest level with at least the budget."""
    budget = settings.thinking_budget
    if budget is None:
        return settings.thinking
    return next((level for level, tokens in THINKING_TOKENS.items() if budget <= tokens), "max")


def _by_level(settings: ModelSettings, _model: Model) -> Fields:
    level = level_of(settings)
    if level is None:
        return {}
    return {"thinking": False if level == "off" else level}


def _openai(settings: ModelSettings, model: Model) -> Fields:
    fields = _by_level(settings, model)
    # Without a summary, reasoning is neither shown nor streamed.
    return {**fields, "openai_reasoning_summary": "auto"} if fields.get("thinking") else fields


def _anthropic(settings: ModelSettings, model: Model) -> Fields:
    tokens = settings.thinking_tokens
    profile: Mapping[str, Any] = cast("Mapping[str, Any]", model.profile)
    if not tokens or profile.get("anthropic_supports_adaptive_thinking", False):
        return _by_level(settings, model)
    budget = max(ANTHROPIC_MINIMUM, tokens)
    return {
        "anthropic_thinking": _enabled_thinking(budget),
        **_raised_max_tokens(settings, budget),
        **_without_sampling(settings),
    }


def _bedrock(settings: ModelSettings, model: Model) -> Fields:
    tokens = settings.thinking_tokens
    profile: Mapping[str, Any] = cast("Mapping[str, Any]", model.profile)
    is_claude = profile.get("bedrock_thinking_variant") == "anthropic"
    if not tokens or not is_claude or profile.get("bedrock_supports_adaptive_thinking", False):
        return _by_level(settings, model)
    budget = max(ANTHROPIC_MINIMUM, tokens)
    fields = {"bedrock_additional_model_requests_fields": {"thinking": _enabled_thinking(budget)}}
    return {**fields, **_raised_max_tokens(settings, budget), **_without_sampling(settings)}


def _google(settings: ModelSettings, model: Model) -> Fields:
    tokens = settings.thinking_tokens
    if not tokens or model.profile.get("google_supports_thinking_level", True):
        return _by_level(settings, model)
    names = sorted(GEMINI_MINIMA, key=len, reverse=True)
    minimum = next((GEMINI_MINIMA[name] for name in names if model.model_name.startswith(name)), 1)
    return {"google_thinking_config": {"include_thoughts": True, "thinking_budget": max(minimum, tokens)}}


def _enabled_thinking(budget: int) -> Fields:
    return {"type": "enabled", "budget_tokens": budget}


def _raised_max_tokens(settings: ModelSettings, budget: int) -> Fields:
    fits_budget = settings.max_tokens is None or settings.max_tokens > budget
    return {} if fits_budget else {"max_tokens": budget + (settings.max_tokens or 0)}


def _without_sampling(_settings: ModelSettings) -> Fields:
    """Unset the sampling parameters that Anthropic rejects while thinking."""
    return {"temperature": None, "top_k": None}


ANTHROPIC = Dialect(_anthropic, "anthropic-messages", cache_prefix="anthropic", thinks_when_forced=False)
OPENAI = Dialect(_openai, "openai-responses", extra={"openai_store": False})
OPENAI_CHAT = Dialect(_by_level, "openai-chat")
OPENROUTER = Dialect(_by_level, "openai-chat", cache_prefix="openrouter")
GOOGLE = Dialect(_google, "google-generate")
BEDROCK = Dialect(_bedrock, "bedrock-converse", cache_prefix="bedrock", thinks_when_forced=False, takes_retries=False)
