"""Exceptions raised, caught and passed on."""


class Invalid(Exception):
    def __init__(self, field, value):
        super().__init__(f"{field}: {value!r}")
        self.field = field


def parse(text):
    try:
        return int(text)
    except ValueError as error:
        raise Invalid("number", text) from error


def looked_up(table, key):
    try:
        return table[key]
    except KeyError:
        return None


def cleaned(values):
    good, bad, closed = [], {}, 0
    for value in values:
        try:
            good.append(parse(value))
        except Invalid as error:
            bad[error.field] = bad.get(error.field, 0) + 1
        finally:
            closed += 1
    return good, bad, closed


values = [str(i) if i % 4 else f"x{i}" for i in range(12_000)]
good, bad, closed = cleaned(values)
table = {i: i * i for i in range(0, 3000, 2)}
missing = sum(1 for i in range(12_000) if looked_up(table, i) is None)
result = sum(good), bad, closed, missing
