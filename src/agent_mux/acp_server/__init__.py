"""Run any agent as an agent of the Agent Client Protocol (ACP), for editors that support only that protocol.

The official library (`agent-client-protocol`, the extra `acp`) implements the connection to the editor; `AgentMux`
drives the agent. The `acp` adapters work in the other direction: they drive agents that speak the protocol.

`serving.serve` serves one connection. A session of the editor is a run that stays open (`session.py`). Events become
ACP updates (`updates.py` and `tool_updates.py`, both pure). Approvals and questions of the agent are forwarded to the
editor (`interactions.py`).
"""
