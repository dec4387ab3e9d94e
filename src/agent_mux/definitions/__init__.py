"""Skills and sub-agents: what agents are taught by files in folders. Source: run API, section 7."""
