# %%
items = [3, 1]
push = items.append
class A:
    def __init__(self): self.n = 0
    def inc(self): self.n += 1; return self.n
    @classmethod
    def name(cls): return cls.__name__
a = A()
inc = a.inc; name = A.name; callbacks = [a.inc, items.append, len, str.upper, 'x'.join, dict.fromkeys, A.inc, print, a.__repr__]
slot = A.__init__; wrapper = [].__len__; desc = str.join; classm = dict.__dict__['fromkeys']
# %% then
push(9); inc(); callbacks[0](); callbacks[1](8)
# %% check
items == [3, 1, 9, 8] and a.n == 2
name() == 'A' and callbacks[3]('q') == 'Q' and callbacks[4](['1', '2']) == '1x2' and callbacks[5]('a') == {'a': None}
callbacks[6](a) == 3 and slot is A.__dict__['__init__'] and wrapper() == 0 and desc('-', 'ab') == 'a-b'
classm.__name__ == 'fromkeys'
