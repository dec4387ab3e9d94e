"""What is kept of conversations, and where."""
