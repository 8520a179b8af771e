"""Backtracking: eight queens, and a sudoku."""


def queens(n):
    found = 0
    columns, rising, falling = set(), set(), set()

    def place(row):
        nonlocal found
        if row == n:
            found += 1
            return
        for column in range(n):
            if column in columns or row + column in rising or row - column in falling:
                continue
            columns.add(column)
            rising.add(row + column)
            falling.add(row - column)
            place(row + 1)
            columns.remove(column)
            rising.remove(row + column)
            falling.remove(row - column)

    place(0)
    return found


def solve(board):
    for row in range(9):
        for column in range(9):
            if board[row][column] == 0:
                for digit in range(1, 10):
                    if fits(board, row, column, digit):
                        board[row][column] = digit
                        if solve(board):
                            return True
                        board[row][column] = 0
                return False
    return True


def fits(board, row, column, digit):
    for i in range(9):
        if board[row][i] == digit or board[i][column] == digit:
            return False
    top, left = row // 3 * 3, column // 3 * 3
    for i in range(top, top + 3):
        for j in range(left, left + 3):
            if board[i][j] == digit:
                return False
    return True


puzzle = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
board = [[int(c) for c in puzzle[i : i + 9]] for i in range(0, 81, 9)]
solve(board)
result = queens(7), board[0], board[8]
