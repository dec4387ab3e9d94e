"""What the agents stored of their sessions: found, listed, read, searched, priced, exported. Never written."""
