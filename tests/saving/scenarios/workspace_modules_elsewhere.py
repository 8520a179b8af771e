# %%
import importlib, importlib.util, os, pathlib, sys
os.makedirs('lib/store'); os.makedirs('sub')
os.environ['RATES'] = '3'
pathlib.Path('lib/shop.py').write_text("import os\nRATE = int(os.environ['RATES'])\nclass Cart:\n    n = 7\ndef total(cart): return cart.n + RATE\n")
pathlib.Path('lib/store/__init__.py').write_text('from .parts import make\n')
pathlib.Path('lib/store/parts.py').write_text('import shop\ndef make(): return shop.Cart()\n')
pathlib.Path('a-part.py').write_text('class Part: pass\n')
pathlib.Path('local.py').write_text('text = open("here").read()\ndef f(): return text\n')
pathlib.Path('sub/here').write_text('1')
sys.path.append(os.path.abspath('lib'))
import shop, store
cart = store.make(); total = shop.total
spec = importlib.util.spec_from_file_location('part', 'a-part.py')
part = importlib.util.module_from_spec(spec); sys.modules['part'] = part; spec.loader.exec_module(part)
del spec
piece = part.Part()
os.chdir('sub')
import local
f = local.f
shop.RATE += 1
# %%
os.remove('../lib/shop.py'); os.remove('../a-part.py')
pathlib.Path('../lib/store/parts.py').write_text('def other(')
try: importlib.reload(sys.modules['store.parts'])
except SyntaxError: pass
# %% check
total(cart) == 11 and type(cart) is shop.Cart and shop.total is total and store.parts.make is store.make
type(store.make()) is shop.Cart and type(piece) is part.Part and sys.modules['part'] is part
f() == '1' and local.f is f and os.path.basename(os.getcwd()) == 'sub' and sys.path.count(os.path.abspath('../lib')) == 1
shop.__file__.endswith('lib/shop.py') and shop.__spec__.origin == shop.__file__ and list(store.__path__) == [os.path.dirname(store.__file__)]
not any(type(one).__name__ == 'Finder' for one in sys.meta_path)
