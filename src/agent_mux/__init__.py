"""agent-mux."""
