"""The runs of this machine: active ones by their control sockets, all recorded ones by their journals."""

from agent_mux.client.local_runs.listing import LocalRuns, RunRecord
from agent_mux.client.local_runs.pruning import PrunedRun

__all__ = ["LocalRuns", "PrunedRun", "RunRecord"]
