"""What happened, in words: events as one line each, and text that is safe to show. For people and for models."""
