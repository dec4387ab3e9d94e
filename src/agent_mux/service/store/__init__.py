"""What the service remembers over a restart: SQLite without any set-up, or PostgreSQL by URL."""
