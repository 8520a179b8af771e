"""Dynamic programming: knapsack, longest common subsequence, edit distance, coins."""


def knapsack(weights, values, room):
    best = [0] * (room + 1)
    for i in range(len(weights)):
        for left in range(room, weights[i] - 1, -1):
            best[left] = max(best[left], best[left - weights[i]] + values[i])
    return best[room]


def common(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                table[i][j] = table[i - 1][j - 1] + 1
            else:
                table[i][j] = max(table[i - 1][j], table[i][j - 1])
    return table[-1][-1]


def distance(a, b):
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y)))
        previous = current
    return previous[-1]


def change(coins, amount):
    ways = [1] + [0] * amount
    for coin in coins:
        for total in range(coin, amount + 1):
            ways[total] += ways[total - coin]
    return ways[amount]


a, b = "ACGTTGCAAC" * 11, "TGCATGCCGA" * 11
weights = [i * 7 % 23 + 1 for i in range(50)]
values = [i * 13 % 37 + 5 for i in range(50)]
result = knapsack(weights, values, 400), common(a, b), distance(a, b), change([1, 2, 5, 10, 20, 50, 100, 200], 2000)
