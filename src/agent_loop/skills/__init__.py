"""Skills that a model activates: `Agent(skills=...)`. See docs/how-to/build-an-agent.md."""
