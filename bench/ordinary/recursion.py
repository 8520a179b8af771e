"""Recursive functions: Fibonacci, permutations, Ackermann, a tree's depth, towers of Hanoi."""


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def permutations(items):
    if len(items) <= 1:
        return [items]
    return [[items[i], *rest] for i in range(len(items)) for rest in permutations(items[:i] + items[i + 1 :])]


def ackermann(m, n):
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def depth(tree):
    return 0 if tree is None else 1 + max(depth(tree[0]), depth(tree[1]))


def grow(n):
    return None if n == 0 else (grow(n - 1), grow(n // 2))


def hanoi(n, source, target, spare, moves):
    if n:
        hanoi(n - 1, source, spare, target, moves)
        moves.append((source, target))
        hanoi(n - 1, spare, target, source, moves)


moves = []
hanoi(12, "a", "c", "b", moves)
result = fib(21), len(permutations(list(range(7)))), ackermann(2, 40), depth(grow(24)), len(moves)
