# %%
import numpy as np
from scipy import fft, signal

rate = 500
t = np.arange(0, 2, 1 / rate)
rng = np.random.default_rng(1)
clean = np.sin(2 * np.pi * 12 * t) + 0.5 * np.sin(2 * np.pi * 30 * t)
noisy = clean + rng.normal(0, 0.8, t.size)

# %%
spectrum = np.abs(fft.rfft(noisy)) / t.size
frequencies = fft.rfftfreq(t.size, 1 / rate)
peaks, _ = signal.find_peaks(spectrum, height=0.15)
frequencies[peaks]

# %%
low_pass = signal.butter(4, 40, fs=rate, output="sos")
filtered = signal.sosfiltfilt(low_pass, noisy)
before, after = (float(np.mean((one - clean) ** 2)) for one in (noisy, filtered))
print(f"{before:.3f} -> {after:.3f}")

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(8, 2.5))
plt.plot(t[:200], noisy[:200], alpha=0.3)
plt.plot(t[:200], filtered[:200])

# %%
window = filtered[100:200]
window -= window.mean()
assert after < before / 3 and abs(filtered[100:200].mean()) < 1e-12
