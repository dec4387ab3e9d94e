"""A Bedrock client that never retries: botocore accepts that setting only when the client is created."""

import functools
from typing import Any

import boto3
from botocore.config import Config
from botocore.loaders import create_loader
from botocore.session import Session
from botocore.tokens import FrozenAuthToken

from agent_loop.providers.access import Access

CONNECT_TIMEOUT = 60  # seconds
READ_TIMEOUT = 300  # seconds of silence; models think long before they speak


def bedrock_client(access: Access) -> Any:
    """Return a client with a Bedrock API key, or with AWS credentials from `access` or the environment."""
    known = access.credentials or {}
    session = boto3.Session(botocore_session=_session(access.api_key), region_name=access.region, **known)
    config = Config(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT,
        retries={"total_max_attempts": 1, "mode": "standard"},
        signature_version="bearer" if access.api_key else None,
    )
    return session.client("bedrock-runtime", config=config, endpoint_url=access.base_url)


def _session(api_key: str | None) -> Session:
    session = _KeySession(api_key) if api_key else Session()
    session.register_component("data_loader", _descriptions())
    return session


@functools.cache
def _descriptions() -> Any:
    """Return the loader of AWS service descriptions, cached because they are megabytes of JSON."""
    return create_loader()


class _KeySession(Session):  # type: ignore[misc]  # botocore has no types
    """A botocore session with an API key and without other credentials."""

    def __init__(self, api_key: str) -> None:
        super().__init__()
        self._key = api_key

    def get_auth_token(self, **_: Any) -> FrozenAuthToken:
        return FrozenAuthToken(self._key)

    def get_credentials(self) -> None:
        return None
