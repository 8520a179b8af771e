# %%
import os, sys, warnings, locale
os.makedirs('sub/deeper', exist_ok=True)
os.chdir('sub')
os.environ['MY_VAR'] = 'yes'; os.environ.pop('USER', None)
sys.path.insert(0, 'extra'); sys.setrecursionlimit(2345)
warnings.filterwarnings('ignore', message='something special')
env = os.environ
# %% check
os.path.basename(os.getcwd()) == 'sub' and os.path.isdir('deeper')
os.environ['MY_VAR'] == 'yes' and 'USER' not in os.environ and env is os.environ
sys.path[0] == 'extra' and sys.getrecursionlimit() == 2345
any(f[1] is not None and f[1].pattern == 'something special' for f in warnings.filters)
