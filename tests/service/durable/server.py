"""A server in a process of its own, whose agent is the scripted one: `python -m ...server CONFIG_DIR SETTINGS BODY`.

It prints its URL when it listens. `SETTINGS`: JSON.
"""

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

from tests.process.scripted import scripted_adapter

from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.application import make_application
from agent_mux.service.server import HttpServer
from agent_mux.service.settings import ServiceSettings


class _Announced(HttpServer):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        sys.stdout.write(f"{self.url}\n")
        sys.stdout.flush()


def main() -> None:
    directory, chosen, body = sys.argv[1:]
    logging.basicConfig(level=logging.WARNING)
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter(body))
    settings = ServiceSettings(config_dir=Path(directory), **{"port": 0, "drain": 0, **json.loads(chosen)})
    asyncio.run(_Announced(make_application(settings, adapters), settings).serve())


if __name__ == "__main__":
    main()
