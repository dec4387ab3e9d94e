"""`amux-agent`: the embedded agent as a program that prints AgentEvents as JSON lines."""
