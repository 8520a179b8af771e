# needs: matplotlib
# %%
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
line, = ax.plot([1, 2], label='normal')
both, axes = plt.subplots(1, 2)
bars = axes[0].bar(['x', 'y'], [1, 2]); axes[1].hist([1, 2, 2, 3]); axes[1].legend(['a']); axes[0].set_title('T')
drawn, axis = plt.subplots(); axis.plot([1, 2, 3]); drawn.savefig('drawn.png', bbox_inches='tight')
plt.close('all')
# %% check
ax.figure is fig and ax.lines[0] is line and plt.get_fignums() == [] and len(both.axes) == 2
# %% then
ax.set_title('later'); fig.canvas.draw()
# %% check
ax.get_title() == 'later'
