"""Attacks from inside a session, and on the host's handling of one: each meets its wall."""

import pytest

from cellblock_attacks.tables import ATTACKS


def _rows():
    for attack in ATTACKS:
        marks = [pytest.mark.threat(attack.threat)]
        if attack.hole:
            marks.append(pytest.mark.xfail(strict=True, reason=attack.hole))
        yield pytest.param(attack, id=attack.name, marks=marks)


@pytest.mark.hostile
@pytest.mark.timeout(420)  # the first one waits for all
@pytest.mark.parametrize("attack", list(_rows()))
def test_the_wall_holds_and_the_session_goes_on(attack, outcomes):
    """The answer names the wall; nothing secret came out, nothing of the host's changed."""
    outcome = outcomes[attack.name]
    assert outcome["answer"] == attack.expect, attack.wall
    assert outcome["leaked"] is False
    assert outcome["touched"] == []
    assert outcome["harmed"] == []
    assert outcome["alive"] is True
    assert outcome["lost"] == []
    assert outcome["kept"] == ["kept", "kept"]
    if attack.dies:
        assert outcome["rolled_back"] is True
