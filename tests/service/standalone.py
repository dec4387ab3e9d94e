"""`python -m tests.service.standalone DIRECTORY [BODY [ROOT]]`: a server in its own process, with a scripted agent.

Prints where it listens. For tests that look at the process, or kill it.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.process.scripted import scripted_adapter

from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.application import make_application
from agent_mux.service.server import HttpServer
from agent_mux.service.settings import ServiceSettings


def serve(directory: str, body: str = "", root: str = ".") -> None:
    """Serve until a signal."""
    registry = AdapterRegistry()
    registry.register(scripted_adapter(body))
    settings = ServiceSettings(config_dir=Path(directory), port=0, drain=0, roots=[Path(root)])
    server = HttpServer(make_application(settings, registry), settings)

    def announce() -> None:
        server.started_event.wait()
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()

    threading.Thread(target=announce).start()
    with suppress(KeyboardInterrupt):
        server.run()


@contextmanager
def standalone(directory: Path, body: str, root: Path | None = None) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Its URL and its process. `root`: the directory that runs may work in; default: that of the project."""
    command = [sys.executable, "-m", "tests.service.standalone", str(directory), body, str(root or ".")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process
        finally:
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    serve(*sys.argv[1:])
