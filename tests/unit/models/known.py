"""Made-up models and agents."""

import os
import stat
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from tests.process.scripted import scripted_adapter

from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import ModelCapabilities, ModelListing, Price
from agent_mux.sdk.registry import AdapterRegistry

DAY = date(2026, 11, 1)
BIG = ModelCapabilities(
    model_id="big-2", provider="maker", display_name="Big", alias=("big",), context_window=1_048_576,
    max_output_tokens=64_000, price=Price(2.0, 10.0, 0.2, 2.5, threshold=1000, beyond=Price(4.0, 20.0)), thinking=True,
    as_of=DAY,
)  # fmt: skip
SMALL = ModelCapabilities(model_id="small-1.5", provider="maker", context_window=200_000, as_of=DAY)
OLD = ModelCapabilities(
    model_id="big-1", provider="maker", deprecated=True, retires_on=date(2026, 12, 1), successor="big-2", as_of=DAY
)
MODELS = (BIG, SMALL, OLD)


def parse_listing(printed: str) -> tuple[ModelCapabilities, ...]:
    """Parse a listing with one name per line."""
    if "nonsense" in printed:
        raise ValueError("it is nonsense")
    return tuple(ModelCapabilities(model_id=name, provider="maker") for name in printed.split())


def agent(**fields: Any) -> Adapter:
    """Return an adapter that offers `MODELS`, and lists its own with `toy models`."""
    given = {"models": lambda: MODELS, "model_listing": ModelListing(argv=("models",), parse=parse_listing), **fields}
    return replace(
        scripted_adapter(""), agent="toy", aliases=("toy-agent",), executables=("toy",),
        executable_variable="AMUX_TOY_EXECUTABLE", takes_command=False, **given,
    )  # fmt: skip


def registry(*adapters: Adapter) -> AdapterRegistry:
    """Return a registry with only these adapters."""
    known = AdapterRegistry()
    known._points.clear()
    for adapter in adapters:
        known.register(adapter)
    return known


def program(directory: Path, script: str) -> dict[str, str]:
    """Return an environment in which the agent is this shell script."""
    directory.mkdir(exist_ok=True)
    path = directory / "toy"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"PATH": os.pathsep.join([str(directory), os.environ["PATH"]]), "AMUX_TOY_EXECUTABLE": str(path)}
