"""An agent of any adapter, as an agent of the Agent Client Protocol: for editors that know that protocol alone.

The editor's side is the official library's (`agent-client-protocol`, the extra `acp`), the agent's side is `AgentMux`.
This is the other direction of the adapters that drive agents which speak the protocol themselves.

`serving.serve` serves one connection. A session of the editor is a run that stays open (`session.py`); events become
updates (`updates.py` and what it uses, all pure); what the agent asks goes to the person in the editor (`asking.py`).
"""
