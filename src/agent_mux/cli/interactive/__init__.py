"""`amux run --interactive`: a conversation with an agent, typed at a terminal or sent as JSON lines."""
