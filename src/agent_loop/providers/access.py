"""Access to a vendor's API: address, key, region. Unset values come from the vendor's environment variables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agent_loop.checked import Checked
from agent_loop.errors import ConfigurationError, MissingKeyError


@dataclass(frozen=True, slots=True, kw_only=True)
class Compat(Checked):
    """How a server of the chat-completions API differs from what is known about it; None: no difference."""

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    developer_role: bool | None = None
    """Whether instructions have the role "developer" instead of "system"."""
    reasoning_effort: bool | None = None
    """Whether the model thinks, and accepts an effort."""
    strict_tools: bool | None = None
    """Whether tools may be declared as strict."""
    forced_tool_choice: bool | None = None
    """Whether a tool call can be required; otherwise the model decides."""
    json_schema: bool | None = None
    """Whether the server enforces an output schema."""
    images: bool | None = None
    context_window: int | None = None
    """Tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextManagement:
    """Edits of the context by Anthropic's API, in its own form. Raises `ConfigurationError` for other forms."""

    edits: Sequence[Mapping[str, Any]]
    """For example `{"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 5}}`."""
    betas: Sequence[str] = ("context-management-2025-06-27",)
    """The versions of the API that the requests name."""

    def __post_init__(self) -> None:
        if not self.edits or isinstance(self.edits, Mapping | str):
            raise ConfigurationError("context_management needs a list of edits")
        for edit in self.edits:
            kind = edit.get("type") if isinstance(edit, Mapping) else None
            if not isinstance(kind, str) or not kind.startswith("clear_"):
                raise ConfigurationError(
                    f"{edit!r} is not an edit for context_management; use the types clear_tool_uses_... and "
                    "clear_thinking_... (the agent itself compacts the history)"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(Checked):
    """Everything that a client needs besides the model's name. `repr` omits the secrets."""

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_version: str | None = None
    """Version of the Azure API."""
    project: str | None = None
    """Project of Google Cloud."""
    region: str | None = None
    """Location of Google Cloud, or AWS region."""
    credentials: Any = field(default=None, repr=False)
    """Replace the machine's default credentials.

    Google Cloud: an object of `google.auth`. AWS: `aws_access_key_id`, `aws_secret_access_key` and optionally
    `aws_session_token`.
    """
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request; their values count as secrets."""
    compat: Compat = Compat()
    """Differences of a server of the chat-completions API."""
    context_management: ContextManagement | None = None
    """Edits of the context by the API; None: none. Only for Anthropic."""
    secrets: Sequence[str] = field(default=(), repr=False)
    """Further texts to redact from errors."""

    def all_secrets(self) -> Sequence[str]:
        """Return all texts to redact from errors at this moment: Google renews its tokens."""
        credential_secrets = (
            self.credentials.values()
            if isinstance(self.credentials, Mapping)
            else (getattr(self.credentials, "token", None),)
        )
        return [
            secret for secret in (self.api_key, *self.headers.values(), *self.secrets, *credential_secrets) if secret
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Environment variables of each value; the first one that is set counts."""

    api_key: tuple[str, ...] = ()
    base_url: tuple[str, ...] = ()
    api_version: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Fields of `Access` that are required."""
    default_base_url: str | None = None


def _service(base_url: str, *keys: str) -> Variables:
    """Return the variables of a service with the chat-completions API; a local one without keys needs none."""
    return Variables(
        api_key=keys,
        base_url=(f"{keys[0].removesuffix('_API_KEY')}_BASE_URL",) if keys else (),
        needs=("api_key",) if keys else (),
        default_base_url=base_url,
    )


CHAT_SERVICES: Mapping[str, Variables] = {
    "openrouter": _service("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": _service("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "xai": _service("https://api.x.ai/v1", "XAI_API_KEY"),
    "deepseek": _service("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "mistral": _service("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "together": _service("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "fireworks": _service("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "cerebras": _service("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "moonshotai": _service("https://api.moonshot.ai/v1", "MOONSHOTAI_API_KEY", "MOONSHOT_API_KEY"),
    "zai": _service("https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
    "alibaba": _service(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "ALIBABA_API_KEY", "DASHSCOPE_API_KEY"
    ),
    "nebius": _service("https://api.studio.nebius.com/v1", "NEBIUS_API_KEY"),
    "sambanova": _service("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    "huggingface": replace(
        _service("https://router.huggingface.co/v1", "HF_TOKEN"), base_url=("HUGGINGFACE_BASE_URL",)
    ),
    "vercel": _service("https://ai-gateway.vercel.sh/v1", "VERCEL_AI_GATEWAY_API_KEY"),
    "ollama": replace(_service("http://localhost:11434/v1"), base_url=("OLLAMA_BASE_URL",)),
    "lmstudio": replace(_service("http://localhost:1234/v1"), base_url=("LMSTUDIO_BASE_URL",)),
    "vllm": replace(_service("http://localhost:8000/v1"), base_url=("VLLM_BASE_URL",), api_key=("VLLM_API_KEY",)),
}
"""Services with the API of OpenAI's chat completions, by name."""
VARIABLES: Mapping[str, Variables] = {
    "anthropic": Variables(api_key=("ANTHROPIC_API_KEY",), base_url=("ANTHROPIC_BASE_URL",), needs=("api_key",)),
    "openai": Variables(api_key=("OPENAI_API_KEY",), base_url=("OPENAI_BASE_URL",), needs=("api_key",)),
    "openai-chat": Variables(api_key=("OPENAI_API_KEY",), base_url=("OPENAI_BASE_URL",), needs=("api_key",)),
    "openai-compatible": Variables(
        api_key=("OPENAI_COMPATIBLE_API_KEY",), base_url=("OPENAI_COMPATIBLE_BASE_URL",), needs=("base_url",)
    ),
    "azure": Variables(
        api_key=("AZURE_OPENAI_API_KEY",),
        base_url=("AZURE_OPENAI_ENDPOINT",),
        api_version=("OPENAI_API_VERSION",),
        needs=("base_url", "api_key"),
    ),
    "google": Variables(
        api_key=("GOOGLE_API_KEY", "GEMINI_API_KEY"), base_url=("GOOGLE_GEMINI_BASE_URL",), needs=("api_key",)
    ),
    "vertex": Variables(
        base_url=("GOOGLE_VERTEX_BASE_URL",),
        project=("GOOGLE_CLOUD_PROJECT",),
        region=("GOOGLE_CLOUD_LOCATION",),
        needs=("project",),
    ),
    "bedrock": Variables(
        api_key=("AWS_BEARER_TOKEN_BEDROCK",),
        base_url=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",),
        region=("AWS_REGION", "AWS_DEFAULT_REGION"),
        secrets=("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
        needs=("region",),
    ),
    **CHAT_SERVICES,
}
DEFAULT_API_VERSION = "2025-04-01-preview"
"""Default version of the Azure API: the first one with reasoning in the Responses API."""


def complete_access(vendor: str, access: Access, environ: Mapping[str, str]) -> Access:
    """Return the access completed from the environment. Raises `ConfigurationError` for missing values."""
    names = VARIABLES[vendor]
    values: dict[str, Any] = {
        field_name: getattr(access, field_name) or _first(getattr(names, field_name), environ)
        for field_name in ("base_url", "api_key", "api_version", "project", "region")
    }
    values["base_url"] = values["base_url"] or names.default_base_url
    secrets = (*access.secrets, *(environ[name] for name in names.secrets if environ.get(name)))
    resolved = replace(access, **values, secrets=secrets)
    for field_name in names.needs:
        if not getattr(resolved, field_name) and not (field_name == "project" and resolved.api_key):
            error_type = MissingKeyError if field_name == "api_key" else ConfigurationError
            raise _missing(error_type, vendor, field_name, getattr(names, field_name))
    if resolved.base_url and not resolved.base_url.startswith(("https://", "http://")):
        raise ConfigurationError(
            f"{resolved.base_url!r} is not a valid address for {vendor}; start it with https:// or http://"
        )
    return resolved


def _first(names: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)


def _missing(
    error_type: type[ConfigurationError], vendor: str, field_name: str, names: tuple[str, ...]
) -> ConfigurationError:
    noun = {"api_key": "an API key", "base_url": "an address", "project": "a project", "region": "a region"}[field_name]
    ways = [f"set {' or '.join(names)}"] if names else []
    need = f"{vendor} needs {noun}"
    return error_type(f"{need}; {' or '.join([*ways, f'pass {field_name}='])}", need=need, variables=names)
