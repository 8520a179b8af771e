"""The same attacks where there are no namespaces: each is refused, or stands among what is not promised there."""

from __future__ import annotations

import pytest

from cellblock_attacks.attack import Attack
from cellblock_attacks.reduced import ANSWERS, ATTACKS, NOT_PROMISED, SHARED, refused
from cellblock_attacks.tables import BY_NAME
from cellblock_attacks.threats import THREATS


def _rows(attacks: tuple[Attack, ...]):
    for attack in attacks:
        yield pytest.param(attack, id=attack.name, marks=pytest.mark.threat(attack.threat))


def _require_untouched(attack: Attack, outcome: dict[str, object]) -> None:
    assert outcome["leaked"] is False
    assert outcome["touched"] == []
    assert outcome["harmed"] == []
    assert outcome["alive"] is True
    if attack.dies:
        assert outcome["lost"] == ["kept_name"]
    else:
        assert outcome["kept"] == ["kept", "kept"]


@pytest.mark.hostile
@pytest.mark.timeout(420)  # the first one waits for all
@pytest.mark.parametrize("attack", list(_rows(SHARED)))
def test_attack_of_isolated_sessions_is_refused_without_namespaces(attack, reduced_outcomes):
    """As in an isolated session, or refused where that would have had nothing to reach."""
    outcome = reduced_outcomes[attack.name]
    answer = outcome["answer"]
    assert answer == attack.expect or answer == ANSWERS.get(attack.name, attack.expect) or refused(answer), attack.wall
    _require_untouched(attack, outcome)


@pytest.mark.hostile
@pytest.mark.timeout(420)  # the first one waits for all
@pytest.mark.parametrize("attack", list(_rows(ATTACKS)))
def test_the_wall_holds_without_namespaces(attack, reduced_outcomes):
    outcome = reduced_outcomes[attack.name]
    assert outcome["answer"] == attack.expect, attack.wall
    _require_untouched(attack, outcome)


def test_what_is_not_promised_stands_in_the_register():
    assert set(NOT_PROMISED) | set(ANSWERS) <= set(BY_NAME)
    assert {BY_NAME[name].threat for name in NOT_PROMISED} <= {threat.id for threat in THREATS if threat.reduced}
