# %%
a = 'some text'; b = a
big1 = 'x' * 10000; big2 = big1
t = (1, 2, 3); tt = t
blob = b'y' * 100000; blobs = [blob]
n1 = 10 ** 30; ns = {'n': n1}
# %% check
a == b and big1 is big2 and t is tt and blobs[0] is blob and ns['n'] == n1
