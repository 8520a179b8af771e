import matplotlib.pyplot as plt

plt.plot([1, 3, 2])
plt.savefig("curve.svg")
print("drawn")
