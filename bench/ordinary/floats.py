"""Float numerics: a pendulum by Runge and Kutta, an integral, pi by a series."""

import math


def slope(angle, speed):
    return speed, -9.81 * math.sin(angle) - 0.1 * speed


def swing(steps, dt):
    angle, speed = 1.0, 0.0
    for _ in range(steps):
        a1, s1 = slope(angle, speed)
        a2, s2 = slope(angle + a1 * dt / 2, speed + s1 * dt / 2)
        a3, s3 = slope(angle + a2 * dt / 2, speed + s2 * dt / 2)
        a4, s4 = slope(angle + a3 * dt, speed + s3 * dt)
        angle += (a1 + 2 * a2 + 2 * a3 + a4) * dt / 6
        speed += (s1 + 2 * s2 + 2 * s3 + s4) * dt / 6
    return angle


def integral(f, low, high, steps):
    width = (high - low) / steps
    return sum(f(low + (i + 0.5) * width) for i in range(steps)) * width


def leibniz(terms):
    total = 0.0
    sign = 1.0
    for k in range(terms):
        total += sign / (2 * k + 1)
        sign = -sign
    return 4 * total


result = swing(5000, 0.001), integral(lambda x: x * x * math.exp(-x), 0.0, 5.0, 20_000), leibniz(50_000)
