# %%
open('helper.py', 'w').write('''
import math
LIMIT = 3
class Tool:
    def __init__(self): self.n = 1
shared = Tool()
def use(x): return math.sqrt(x) + LIMIT
''')
import helper
from helper import Tool, use, shared
t = Tool(); f = use
mine = [shared]
# %%
helper.LIMIT = 10
# %% check
use(4) == 12.0 and f is helper.use and type(t) is Tool and helper.Tool is Tool
mine[0] is helper.shared and shared is helper.shared
helper.LIMIT == 10
