"""The agent: a model writes code, a session runs it, the model reads what came of it, until there is an answer."""
