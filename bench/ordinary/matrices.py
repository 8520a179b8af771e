"""Matrices as nested lists: product, transposition, determinant, power."""


def multiply(a, b):
    rows, inner, columns = len(a), len(b), len(b[0])
    out = [[0] * columns for _ in range(rows)]
    for i in range(rows):
        for j in range(columns):
            total = 0
            for k in range(inner):
                total += a[i][k] * b[k][j]
            out[i][j] = total
    return out


def product(a, b):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def determinant(matrix):
    rows = [row[:] for row in matrix]
    found = 1.0
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda r: abs(rows[r][i]))
        if abs(rows[pivot][i]) < 1e-12:
            return 0.0
        if pivot != i:
            rows[i], rows[pivot] = rows[pivot], rows[i]
            found = -found
        found *= rows[i][i]
        for r in range(i + 1, len(rows)):
            factor = rows[r][i] / rows[i][i]
            for c in range(i, len(rows)):
                rows[r][c] -= factor * rows[i][c]
    return found


n = 36
a = [[(i * j + i) % 11 for j in range(n)] for i in range(n)]
b = [[(i + 2 * j) % 7 for j in range(n)] for i in range(n)]
c = multiply(a, b)
assert c == product(a, b)
result = c[5][7], determinant([[float((i * 7 + j * j * 3) % 13) for j in range(n)] for i in range(n)])
