# L3 harmless
import abc
from collections.abc import Sequence

class M(type): pass
class N(abc.ABCMeta): pass

def refused(make):
    try: make()
    except (AttributeError, TypeError): return True
    return False

for meta in (type, M, N, abc.ABCMeta, type(M("A", (), {})), type(Sequence)):
    assert refused(lambda: meta("X", (), {"__del__": print})), meta
    assert refused(lambda: meta("X", (), {"__reduce__": print})), meta
    assert refused(lambda: meta("X", (type(canary),), {})), meta
assert M("X", (), {"a": 1})().a == 1
assert N("X", (), {"a": 1})().a == 1
assert abc.ABCMeta("X", (), {"a": abc.abstractmethod(lambda self: 1)}).__abstractmethods__ == {"a"}
