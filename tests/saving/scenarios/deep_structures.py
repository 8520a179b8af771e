# %%
deep = []
for _ in range(100_000): deep = [deep]
class Link:
    def __init__(self, n, v): self.next = n; self.v = v
chain = None
for i in range(30_000): chain = Link(chain, i)
nest = {}
for _ in range(20_000): nest = {'n': nest}
# %% then
n = 0
while deep: deep = deep[0]; n += 1
m = 0; at = chain
while at: at = at.next; m += 1
k = 0
while nest: nest = nest['n']; k += 1
# %% check
(n, m, k) == (100_000, 30_000, 20_000)
chain.v == 29_999
