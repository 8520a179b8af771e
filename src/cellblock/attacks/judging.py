"""Whether a wall held: what in the outcome of an attack shows that it did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cellblock.attacks import reduced
from cellblock.attacks.attack import Attack
from cellblock.attacks.tables import BY_NAME

Outcome = Mapping[str, object]
"""What `python -m cellblock.attacks` prints of an attack: its answer, and what was found on the host afterwards."""


def reached(outcome: Outcome) -> Iterator[str]:
    """What an attack got at, or changed, outside of its session."""
    if outcome.get("leaked") is not False:
        yield "a secret of the host came out"
    if outcome.get("touched") != []:
        yield f"services of the host were reached: {outcome.get('touched')}"
    if outcome.get("harmed") != []:
        yield f"the host was changed: {outcome.get('harmed')}"


def failed(attack: Attack, outcome: Outcome, *, walls: str = "full") -> Iterator[str]:
    """What else is not as it must be: another answer than the wall's, a session that is over, state that is gone."""
    answer = outcome.get("answer")
    if not _expected(attack, answer, walls):
        yield f"the answer was {answer!r:.300}, that of the wall is {attack.expect!r:.300}"
    if outcome.get("alive") is not True:
        yield f"the session did not go on: {outcome.get('then')!r:.300}"
    lost, kept = outcome.get("lost"), outcome.get("kept") == ["kept", "kept"]
    if attack.dies and walls == "reduced":  # there are no checkpoints
        if lost != ["kept_name"]:
            yield f"names that were lost: {lost}"
    elif not kept or (walls == "full" and lost != []):
        yield "names or files of before were lost"
    if attack.dies and walls == "full" and outcome.get("rolled_back") is not True:
        yield "the session did not go back to before the cell"


def _expected(attack: Attack, answer: object, walls: str) -> bool:
    """Where there are no namespaces, an attack of isolated sessions may be refused before it comes to its wall."""
    if answer == attack.expect:
        return True
    if walls == "full" or attack.name not in BY_NAME:
        return False
    return answer == reduced.ANSWERS.get(attack.name, attack.expect) or reduced.refused(answer)
