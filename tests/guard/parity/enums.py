#: basic
#: needs: enum
from enum import Enum

class Color(Enum):
    RED = 1
    GREEN = 2

print(Color.RED, repr(Color.GREEN), Color.RED.name, Color.RED.value, Color(2), Color["RED"], list(Color), len(Color))
print(Color.RED is Color(1), Color.RED == 1, Color.RED in Color, isinstance(Color.RED, Color))
#: auto
#: needs: enum
from enum import Enum, auto

class Step(Enum):
    START = auto()
    MIDDLE = auto()
    END = auto()

print([s.value for s in Step])
#: aliases-and-unique
#: needs: enum
from enum import Enum, unique

class A(Enum):
    X = 1
    Y = 1

print(A.Y is A.X, list(A), list(A.__members__))
try:
    @unique
    class B(Enum):
        X = 1
        Y = 1
except ValueError as e:
    print(e)
#: int-enum
#: needs: enum
from enum import IntEnum

class Level(IntEnum):
    LOW = 1
    HIGH = 10

print(Level.HIGH > Level.LOW, Level.HIGH + 1, sorted([Level.HIGH, Level.LOW])[0].name, Level.LOW == 1, [0, 5][Level.LOW])
#: str-enum
#: needs: enum
from enum import StrEnum, auto

class Suit(StrEnum):
    HEARTS = auto()
    SPADES = auto()

print(Suit.HEARTS, Suit.SPADES.upper(), f"{Suit.HEARTS:>10}", Suit.HEARTS == "hearts", Suit("spades").name)
#: flag
#: needs: enum
from enum import Flag, auto

class Perm(Flag):
    R = auto()
    W = auto()
    X = auto()
    RW = R | W

p = Perm.R | Perm.X
print(p, Perm.R in p, Perm.W in p, bool(p & Perm.W), p ^ Perm.R, ~p & Perm.RW, Perm.RW.value, [m.name for m in p])
#: int-flag
#: needs: enum
from enum import IntFlag

class F(IntFlag):
    A = 1
    B = 2
    C = 4

print(F.A | F.C, (F.A | F.C) & 4, F(3), int(F.B | F.C), F.A + 1)
#: methods-and-properties
#: needs: enum
from enum import Enum

class Planet(Enum):
    EARTH = (5.97e24, 6.37e6)
    MARS = (6.42e23, 3.39e6)

    def __init__(self, mass, radius):
        self.mass = mass
        self.radius = radius

    @property
    def gravity(self):
        return round(6.674e-11 * self.mass / self.radius ** 2, 2)

    @classmethod
    def heaviest(cls):
        return max(cls, key=lambda p: p.mass)

print(Planet.EARTH.gravity, Planet.MARS.gravity, Planet.heaviest().name)
#: missing-hook
#: needs: enum
from enum import Enum

class Answer(Enum):
    YES = "yes"
    NO = "no"

    @classmethod
    def _missing_(cls, value):
        if isinstance(value, str):
            for member in cls:
                if member.value == value.lower():
                    return member
        return None

print(Answer("YES"), Answer("No"))
try:
    Answer("maybe")
except ValueError as e:
    print(e)
#: generate-next-value
#: needs: enum
from enum import Enum, auto

class Named(Enum):
    @staticmethod
    def _generate_next_value_(name, start, count, last_values):
        return name.lower() + str(count)

    ALPHA = auto()
    BETA = auto()

print([m.value for m in Named])
#: functional
#: needs: enum
from enum import Enum, IntEnum

Animal = Enum("Animal", "CAT DOG BIRD")
Size = IntEnum("Size", {"S": 1, "L": 3})
print(list(Animal), Animal.DOG.value, Size.L > Size.S)
#: cannot-extend
#: needs: enum
#: raises: TypeError
from enum import Enum

class A(Enum):
    X = 1

class B(A):
    Y = 2
#: cannot-set-member
#: needs: enum
#: raises: AttributeError
from enum import Enum

class A(Enum):
    X = 1

A.X = 2
#: unknown-value
#: needs: enum
#: raises: ValueError
from enum import Enum

class A(Enum):
    X = 1

A(7)
#: unknown-name
#: needs: enum
#: raises: KeyError
from enum import Enum

class A(Enum):
    X = 1

A["NOPE"]
#: as-dict-keys-and-in-match
#: needs: enum
from enum import Enum

class State(Enum):
    IDLE = 0
    BUSY = 1
    DONE = 2

def say(s):
    match s:
        case State.IDLE: return "idle!"
        case State.BUSY | State.DONE: return "not idle"

table = {State.IDLE: "a", State.BUSY: "b"}
print(table[State.IDLE], [say(s) for s in State])
#: mixin-with-str
#: needs: enum
from enum import Enum

class Unit(str, Enum):
    KG = "kg"
    M = "m"

print(Unit.KG == "kg", Unit("m"), Unit.KG.upper(), "kg" in [u.value for u in Unit], isinstance(Unit.KG, str))
#: order-mixin
#: needs: enum, functools
from enum import Enum
from functools import total_ordering

@total_ordering
class Grade(Enum):
    C = 1
    B = 2
    A = 3

    def __lt__(self, other):
        return self.value < other.value

print(Grade.A > Grade.B, sorted(Grade, reverse=True)[0], max(Grade))
#: enum-in-dataclass
#: needs: enum, dataclasses
from enum import Enum
from dataclasses import dataclass

class Kind(Enum):
    IN = "in"
    OUT = "out"

@dataclass
class Entry:
    kind: Kind
    amount: int

rows = [Entry(Kind.IN, 5), Entry(Kind.OUT, 3)]
print(sum(r.amount if r.kind is Kind.IN else -r.amount for r in rows), rows[0])
#: state-machine
#: needs: enum
from enum import Enum, auto

class Light(Enum):
    RED = auto()
    GREEN = auto()
    YELLOW = auto()

    def next(self):
        members = list(type(self))
        return members[(members.index(self) + 1) % len(members)]

light = Light.RED
trail = []
for _ in range(4):
    trail.append(light.name)
    light = light.next()
print(trail)
#: private-and-descriptor-members
#: needs: enum
from enum import Enum, nonmember, member

class A(Enum):
    X = 1
    __private = 5
    helper = nonmember(10)

    def f(self):
        return self.value + A.helper

print(list(A), A.X.f())
#: members-that-are-no-identifiers
from enum import Enum
Rank = Enum("Rank", "2 3 J Q")
Suit = Enum("Suit", {"a b": 1, "c-d": 2})
print([r.name for r in Rank], Rank["2"].value, Suit["a b"], list(Suit))
