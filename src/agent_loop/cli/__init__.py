"""`amux-agent`: the runtime as a program that speaks AgentEvent JSON lines."""
