# %%
import os.path as osp, json, xml.etree.ElementTree as ET
from math import *
from collections import OrderedDict as OD
mods = {'j': json, 'l': [osp]}
import types
hand = types.ModuleType('hand', 'made by hand')
hand.value = [1]
exec('def f(): return value + [2]\ndef g(): return f()', hand.__dict__)
hf = hand.f
values = hand.value
space = types.SimpleNamespace(a=1, nested=types.SimpleNamespace(b=values))
names = vars(json)
here = globals()
# %% check
mods['j'] is json and mods['l'][0] is osp and osp.join('a', 'b') == 'a/b' and ET.fromstring('<a/>').tag == 'a'
sqrt(pi) > 1.7 and OD is __import__('collections').OrderedDict
hand.f() == [1, 2] and hand.g() == [1, 2] and hand.__doc__ == 'made by hand' and hf is hand.f
values is hand.value and space.nested.b is values
names is vars(json) and here is globals()
# %% then
hand.value = [5]
# %% check
hf() == [5, 2]
