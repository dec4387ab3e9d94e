"""What there is to say about the model of a run, which is passed on whatever is said. Source: run API, section 2."""

from agent_mux.adapter import Adapter
from agent_mux.models.verdicts import judge


def model_notes(adapter: Adapter, model: str | None) -> tuple[str, ...]:
    """A sentence about a name that is unknown or deprecated, where the agent has a list of its own."""
    if model is None or adapter.takes_any_model:
        return ()
    known = adapter.models()
    said = judge(known, model).sentence(adapter.agent, is_passed_on=True) if known else ""
    return (said,) if said else ()
