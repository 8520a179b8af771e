"""The Mandelbrot set with complex numbers and with floats, and the game of life."""


def escape(c, most):
    z = 0j
    for n in range(most):
        if abs(z) > 2:
            return n
        z = z * z + c
    return most


def picture(width, height, most):
    rows = []
    for y in range(height):
        row = ""
        for x in range(width):
            cx, cy = 3.0 * x / width - 2.0, 2.0 * y / height - 1.0
            zx = zy = 0.0
            n = 0
            while zx * zx + zy * zy < 4.0 and n < most:
                zx, zy = zx * zx - zy * zy + cx, 2.0 * zx * zy + cy
                n += 1
            row += " .:-=+*#%@"[n * 9 // most]
        rows.append(row)
    return rows


def life(cells, size):
    counts = {}
    for x, y in cells:
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                if dx or dy:
                    near = (x + dx) % size, (y + dy) % size
                    counts[near] = counts.get(near, 0) + 1
    return {cell for cell, count in counts.items() if count == 3 or (count == 2 and cell in cells)}


cells = {(i * 7 % 32, i * i % 32) for i in range(200)}
for _ in range(12):
    cells = life(cells, 32)
escaped = sum(escape(complex(x / 20 - 2, y / 20 - 1), 40) for x in range(50) for y in range(20))
result = picture(60, 24, 40)[12], escaped, len(cells)
