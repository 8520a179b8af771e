# %%
puzzle = """
53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79
""".strip()
grid = [[0 if c == "." else int(c) for c in puzzle[row * 9 : row * 9 + 9]] for row in range(9)]

# %%
def candidates(grid, row, column):
    used = set(grid[row]) | {line[column] for line in grid}
    top, left = row // 3 * 3, column // 3 * 3
    used |= {grid[r][c] for r in range(top, top + 3) for c in range(left, left + 3)}
    return [digit for digit in range(1, 10) if digit not in used]

candidates(grid, 0, 2)

# %%
def solve(grid):
    empty = [(len(candidates(grid, r, c)), r, c) for r in range(9) for c in range(9) if not grid[r][c]]
    if not empty:
        return True
    _, row, column = min(empty)
    for digit in candidates(grid, row, column):
        grid[row][column] = digit
        if solve(grid):
            return True
    grid[row][column] = 0
    return False

# %%
work = [row[:] for row in grid]
solve(work)

# %%
for row in work:
    print(*row)

# %%
assert all(sorted(row) == list(range(1, 10)) for row in work) and grid[0][2] == 0
