"""Options that several commands have, as annotations."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.", show_default=False)]
Compact = Annotated[
    bool, typer.Option("--compact", help="Leave the text so far off the delta events.", show_default=False)
]
Debug = Annotated[bool, typer.Option("--debug", help="Say more about errors.", show_default=False)]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours; so does NO_COLOR.", show_default=False)]
ConfigDir = Annotated[
    Path | None,
    typer.Option("--config-dir", help="Instead of ~/.agent-mux (or $AGENT_MUX_CONFIG_DIR).", show_default=False),
]
