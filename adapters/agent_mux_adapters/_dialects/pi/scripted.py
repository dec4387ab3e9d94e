"""How the family is driven against the scripted model: an own provider that speaks chat completions."""

from agent_mux.events.cost import CostRecord
from agent_mux.testing.live import SUBTASK, Place

PROVIDER, MODEL = "scripted", "scripted-model"
CONTEXT_WINDOW = 100_000
PRICES = {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1}
"""US dollars per million tokens."""
PER_CALL = CostRecord(
    total_usd=0.0,
    input_tokens=120,
    output_tokens=12,
    thinking_tokens=5,
    cached_tokens=30,
    cache_creation_tokens=0,
    source="native",
)


def provider(place: Place, key: str) -> dict[str, object]:
    """The provider as the agent's list of models holds it."""
    model = {
        "id": MODEL,
        "name": "Scripted",
        "reasoning": True,
        "input": ["text", "image"],
        "contextWindow": CONTEXT_WINDOW,
        "maxTokens": 8000,
        "cost": PRICES,
    }
    return {"baseUrl": f"{place.url}/v1", "api": "openai-completions", "apiKey": key, "models": [model]}


def subtask(task: str) -> str:
    """The prompt of a sub-agent."""
    return f"{SUBTASK} {task}"
