"""Models: who writes the code. OpenAI-compatible endpoints, LangChain chat models, objects of the user's own, scripts.

Nothing here needs more than the base installation until a model is connected that does.
"""

from cellblock.models.connect import connect
from cellblock.models.protocol import Connected, Message, Model, OnText, Reply, Tokens, ToolRequest, ToolSchema
from cellblock.models.retrying import OnRetry, Patience, Retry
from cellblock.models.scripted import ScriptedModel, record, replayed

__all__ = [
    "connect",
    "Model",
    "Connected",
    "Message",
    "ToolSchema",
    "OnText",
    "Reply",
    "ToolRequest",
    "Tokens",
    "Patience",
    "Retry",
    "OnRetry",
    "ScriptedModel",
    "record",
    "replayed",
]
