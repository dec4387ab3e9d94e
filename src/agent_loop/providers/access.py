"""Access to a vendor's API: address, key, region. Unset values come from the vendor's environment variables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_loop.errors import ConfigurationError, MissingKeyError


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
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
    secrets: Sequence[str] = field(default=(), repr=False)
    """Further texts to redact from errors."""

    def all_secrets(self) -> Sequence[str]:
        """Return all texts to redact from errors at this moment: Google renews its tokens."""
        credential_secrets = (
            self.credentials.values()
            if isinstance(self.credentials, Mapping)
            else (getattr(self.credentials, "token", None),)
        )
        return [secret for secret in (self.api_key, *self.secrets, *credential_secrets) if secret]


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
}
DEFAULT_API_VERSION = "2025-04-01-preview"
"""Default version of the Azure API: the first one with reasoning in the Responses API."""


def complete_access(vendor: str, access: Access, environ: Mapping[str, str]) -> Access:
    """Return the access completed from the environment. Raises `ConfigurationError` for missing values."""
    names = VARIABLES[vendor]
    values = {
        field_name: getattr(access, field_name) or _first(getattr(names, field_name), environ)
        for field_name in ("base_url", "api_key", "api_version", "project", "region")
    }
    secrets = (*access.secrets, *(environ[name] for name in names.secrets if environ.get(name)))
    resolved = replace(access, **values, secrets=secrets)
    for field_name in names.needs:
        if not getattr(resolved, field_name) and not (field_name == "project" and resolved.api_key):
            error_type = MissingKeyError if field_name == "api_key" else ConfigurationError
            raise error_type(_missing_message(vendor, field_name, getattr(names, field_name)))
    if resolved.base_url and not resolved.base_url.startswith(("https://", "http://")):
        raise ConfigurationError(
            f"{resolved.base_url!r} is not a valid address for {vendor}; start it with https:// or http://"
        )
    return resolved


def _first(names: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)


def _missing_message(vendor: str, field_name: str, names: tuple[str, ...]) -> str:
    noun = {"api_key": "an API key", "base_url": "an address", "project": "a project", "region": "a region"}[field_name]
    ways = [f"set {' or '.join(names)}"] if names else []
    return f"{vendor} needs {noun}; {' or '.join([*ways, f'pass {field_name}='])}"
