"""What a model is shown stays within its budget, and what is left out is always the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellblock.agent.context import Context

turns = st.lists(st.tuples(st.text(max_size=300), st.text(max_size=300)), max_size=12)


def context_of(said: list[tuple[str, str]], budget: int) -> Context:
    context = Context("system", "task", budget=budget)
    for reply, observation in said:
        context.reply(reply)
        context.observe(observation)
    return context


def size(messages: list[dict[str, str]]) -> int:
    return sum(len(one["content"]) for one in messages)


@pytest.mark.sampled(0)
@given(turns, st.integers(0, 4_000))
def test_messages_are_within_the_budget_or_all_that_can_be_is_left_out(
    said: list[tuple[str, str]], budget: int
) -> None:
    messages = context_of(said, budget).messages()
    shortest = context_of(said, 0).messages()
    assert size(messages) <= budget or messages == shortest


@given(turns, st.integers(0, 4_000))
def test_the_same_turns_give_the_same_messages(said: list[tuple[str, str]], budget: int) -> None:
    context = context_of(said, budget)
    assert context.messages() == context.messages() == context_of(said, budget).messages()


@given(turns, st.integers(0, 4_000))
def test_roles_take_turns_and_the_ends_are_whole(said: list[tuple[str, str]], budget: int) -> None:
    messages = context_of(said, budget).messages()
    assert [one["role"] for one in messages] == ["system", "user"] + ["assistant", "user"] * len(said)
    assert [one["content"] for one in messages[:2]] == ["system", "task"]
    if said:
        assert [one["content"] for one in messages[-2:]] == [said[-1][0] or "(nothing)", said[-1][1]]


@given(turns, st.integers(0, 2_000), st.integers(0, 2_000))
def test_a_larger_budget_never_shows_less(said: list[tuple[str, str]], one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert size(context_of(said, small).messages()) <= size(context_of(said, large).messages())


def test_the_oldest_observation_is_left_out_first_and_replies_after_all_observations() -> None:
    said = [("a" * 100, "b" * 100), ("c" * 100, "d" * 100), ("e", "f")]
    whole = size(context_of(said, 10_000).messages())
    assert [one["content"][0] for one in context_of(said, whole - 1).messages()[2:]] == ["a", "(", "c", "d", "e", "f"]
    assert [one["content"][0] for one in context_of(said, whole - 60).messages()[2:]] == ["a", "(", "c", "(", "e", "f"]
    assert [one["content"][0] for one in context_of(said, 0).messages()[2:]] == ["(", "(", "(", "(", "e", "f"]
