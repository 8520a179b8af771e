# needs: matplotlib
# %%
import matplotlib.pyplot as plt, matplotlib as mpl
plt.rcParams['figure.figsize'] = (3, 2)
mpl.rc('lines', linewidth=4)
fig, ax = plt.subplots()
line, = ax.plot([1, 2, 3], label='l')
ax.set_title('T')
other = plt.figure(num='named')
# %% check
plt.rcParams['figure.figsize'] == [3.0, 2.0] and plt.rcParams['lines.linewidth'] == 4
ax.figure is fig and fig.axes[0] is ax and ax.lines[0] is line and ax.get_title() == 'T'
sorted(plt.get_fignums()) == [1, 2] and plt.figure(1) is fig and plt.figure('named') is other
# %% then
ax.plot([3, 2, 1]); fig.canvas.draw()
fig.savefig('out.png')
# %% check
len(ax.lines) == 2 and ax.lines[0].get_linewidth() == 4
