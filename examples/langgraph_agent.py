"""A LangGraph agent that computes in a session of its own, which goes on when the program starts again.

    python langgraph_agent.py                       # a script plays the model
    python langgraph_agent.py openai:gpt-5          # any chat model that LangChain knows

Needs `pip install "cellblock[langgraph]"`, and LangChain's package of the model.
"""

import sys
import tempfile
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from cellblock.integrations.langgraph import create_agent_graph

STORE = f"sqlite:///{tempfile.mkdtemp()}/cells.db"  # a real path, or postgresql://…, keeps threads
QUESTIONS = ["How many primes are below 1000?", "And what is their sum?"]


class Scripted(GenericFakeChatModel):
    """A model that gives the messages of a script, whatever tools it is given."""

    def bind_tools(self, tools: Any, **options: Any) -> "Scripted":
        return self


def calls(code: str, number: int) -> AIMessage:
    """A message that runs code by the tool `python_run`."""
    return AIMessage("", tool_calls=[{"name": "python_run", "args": {"code": code}, "id": str(number)}])


def scripted() -> Scripted:
    sieve = "primes = [n for n in range(2, 1000) if all(n % k for k in range(2, int(n**0.5) + 1))]\nprint(len(primes))"
    answers = [calls(sieve, 1), AIMessage("There are 168."), calls("print(sum(primes))", 2), AIMessage("It is 76127.")]
    return Scripted(messages=iter(answers))


def main() -> None:
    if len(sys.argv) > 1:
        from langchain.chat_models import init_chat_model

        model = init_chat_model(sys.argv[1])
    else:
        model = scripted()
    graph = create_agent_graph(model, store=STORE)
    for question in QUESTIONS:  # the second one uses names that the first one left
        state = graph.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "primes"}})
        print(question, "->", state["messages"][-2].content.strip(), "->", state["messages"][-1].content)


if __name__ == "__main__":
    main()
#> How many primes are below 1000? -> 168 -> There are 168.
#> And what is their sum? -> 76127 -> It is 76127.
