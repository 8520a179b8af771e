# %%
import numpy as np

board = np.zeros((24, 24), dtype=bool)
glider = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=bool)
corner = board[:3, :3]
corner[...] = glider
board.sum()

# %%
def neighbours(board):
    return sum(
        np.roll(np.roll(board, dy, 0), dx, 1)
        for dy in (-1, 0, 1)
        for dx in (-1, 0, 1)
        if (dy, dx) != (0, 0)
    )

def tick(board):
    around = neighbours(board.astype(int))
    return (around == 3) | (board & (around == 2))

# %%
def generations(board):
    while True:
        yield board
        board = tick(board)

# %%
seen = []
for number, state in zip(range(40), generations(board)):
    seen.append(state)
len(seen)

# %%
def show(board):
    return "\n".join("".join("#" if cell else "." for cell in row) for row in board)

print(show(seen[4][:6, :6]))

# %%
shifted = np.roll(np.roll(seen[0], 1, 0), 1, 1)
assert (seen[4] == shifted).all() and all(state.sum() == 5 for state in seen)
corner.base is board
