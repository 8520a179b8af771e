"""Building and taking apart of text."""


def report(orders):
    lines = []
    for number, (customer, item, count, price) in enumerate(orders, 1):
        lines.append(f"{number:>5} {customer.title():<12} {item.upper():<8} {count:>3} x {price:8.2f}")
    return "\n".join(lines)


def parse(text):
    totals = {}
    for line in text.splitlines():
        number, customer, item, rest = line.split(None, 3)
        count, _, price = rest.partition(" x ")
        key = customer.strip().lower() + "/" + item.lower()
        totals[key] = totals.get(key, 0.0) + int(count) * float(price)
    return totals


def caesar(text, by):
    out = ""
    for letter in text:
        if letter.isalpha():
            first = ord("A") if letter.isupper() else ord("a")
            out += chr((ord(letter) - first + by) % 26 + first)
        else:
            out += letter
    return out


names = ["ada", "grace", "alan", "edsger", "barbara"]
items = ["tea", "cake", "pen"]
orders = [(names[i % 5], items[i % 3], i % 9 + 1, i % 40 * 1.25) for i in range(3000)]
totals = parse(report(orders))
secret = caesar("The quick brown fox jumps over the lazy dog. " * 200, 3)
result = sorted(totals.items()), secret == caesar(caesar(secret, 10), 16), secret.count("q")
