"""`amux run --interactive`: a conversation with an agent, by a person at a terminal or by a program through JSONL."""
