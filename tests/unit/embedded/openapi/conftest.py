from collections.abc import Iterator

import pytest
from tests.unit.embedded.openapi.service import Service


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()
