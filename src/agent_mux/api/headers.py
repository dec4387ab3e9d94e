"""Names of response headers that the service and its client share."""

SKIPPED_FILES = "Agent-Mux-Skipped"
"""Number of files that cannot be read as a session."""
