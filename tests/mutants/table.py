from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    id: str
    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


ROWS: tuple[Mutant, ...] = ()
