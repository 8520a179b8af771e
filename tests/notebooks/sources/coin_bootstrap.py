# %%
import random

random.seed(2024)
flips = [random.random() < 0.58 for _ in range(200)]
sum(flips)

# %%
def resampled(sample, times):
    for _ in range(times):
        yield sum(random.choices(sample, k=len(sample))) / len(sample)

# %%
shares = sorted(resampled(flips, 1000))
low, high = shares[25], shares[975]
print(f"95 % interval {low:.3f} to {high:.3f}")

# %%
import statistics

statistics.mean(shares), statistics.stdev(shares)

# %%
from fractions import Fraction

share = Fraction(sum(flips), len(flips))
share

# %%
next_one = random.random()
assert low < share < high and 0 <= next_one < 1
