"""Integer loops in a function."""


def work(n):
    total = 0
    for i in range(n):
        for j in range(40):
            total += i * j % 7
            if total > 1000:
                total -= 1000
    return total


result = work(4000)
