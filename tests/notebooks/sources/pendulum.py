# %%
import numpy as np
from scipy.integrate import solve_ivp

gravity, length, damping = 9.81, 1.0, 0.1

# %%
def motion(t, state):
    angle, speed = state
    return [speed, -gravity / length * np.sin(angle) - damping * speed]

solution = solve_ivp(motion, (0, 20), [2.0, 0.0], dense_output=True, rtol=1e-8)
solution.message

# %%
t = np.linspace(0, 20, 500)
angle, speed = solution.sol(t)
energy = 0.5 * (length * speed) ** 2 + gravity * length * (1 - np.cos(angle))
energy[[0, -1]].round(3)

# %%
import matplotlib.pyplot as plt

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
left.plot(t, angle)
right.plot(angle, speed)
right.set_title("phase space")

# %%
damping = 0.0
free = solve_ivp(motion, (0, 5), [0.1, 0.0], rtol=1e-9, atol=1e-10)
drift = abs(0.5 * free.y[1] ** 2 + gravity * (1 - np.cos(free.y[0])) - gravity * (1 - np.cos(0.1))).max()
assert drift < 1e-5 and np.all(np.diff(energy) < 1e-6)
