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
# %%
import codecs, faulthandler, gc, logging, signal, socket, threading
from types import MethodType
logging.disable(logging.WARNING); os.umask(0o077); gc.disable(); gc.set_threshold(500, 5, 5)
locale.setlocale(locale.LC_NUMERIC, 'C.UTF-8'); sys.setswitchinterval(0.02); sys.set_int_max_str_digits(9999)
codecs.register_error('tilde', lambda error: ('~', error.end))
class Finder:
    def __init__(self, name): self.name = name
    def find_spec(self, name, path=None, target=None): return None
sys.meta_path.insert(0, Finder('first')); sys.meta_path.append(Finder('last'))
class Handler:
    def __init__(self): self.seen = []
    def __call__(self, number, frame): self.seen.append(number)
handler = Handler()
signal.signal(signal.SIGUSR1, handler); signal.signal(signal.SIGUSR2, handler.__call__); signal.signal(signal.SIGTERM, signal.SIG_IGN)
seen = []
def look(phase, told): seen.append(phase)
gc.callbacks.append(look); faulthandler.enable()
sys.excepthook = sys.displayhook = threading.excepthook = sys.unraisablehook = look
# %% check
logging.root.manager.disable == logging.WARNING and not gc.isenabled() and gc.get_threshold() == (500, 5, 5)
open('u.txt', 'w').close() or oct(os.stat('u.txt').st_mode & 0o777) == '0o600'
locale.setlocale(locale.LC_NUMERIC) == 'C.UTF-8' and locale.setlocale(locale.LC_TIME) == 'C'
sys.getswitchinterval() == 0.02 and sys.get_int_max_str_digits() == 9999 and 'ä'.encode('ascii', 'tilde') == b'~'
[one.name for one in sys.meta_path if isinstance(one, Finder)] == ['first', 'last'] and sys.meta_path[0].name == 'first'
signal.getsignal(signal.SIGUSR1) is handler and signal.getsignal(signal.SIGUSR2).__self__ is handler and signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
gc.callbacks == [look] and faulthandler.is_enabled()
sys.excepthook is look and sys.displayhook is look and threading.excepthook is look and sys.unraisablehook is look
