# %%
import sys, types, pathlib
rates = types.ModuleType('rates')
exec('vat = 0.5\ndef gross(net): return net * (1 + vat)\nclass Rate: pass\nrate = Rate()', rates.__dict__)
sys.modules['rates'] = rates
gross, rate = rates.gross, rates.rate
held = {'of': [rates.gross], 'kind': rates.Rate}
sys.modules['unnamed'] = types.ModuleType('unnamed', 'Held by no name.')
exec('def f(): return 4', vars(sys.modules['unnamed']))
package = types.ModuleType('parcel'); package.part = types.ModuleType('parcel.part'); package.part.n = [1]
sys.modules['parcel'], sys.modules['parcel.part'] = package, package.part
pathlib.Path('checks.py').write_text('from __main__ import limit\nimport __main__\nmost = __main__.most[0]\ndef fits(n): return n < limit[0]\n')
limit = [5]; most = [9]; above = {'limit': limit}
import checks
fits = checks.fits
pair = [checks.fits, checks]
# %% check
rates.gross(10) == 15 and gross is rates.gross is held['of'][0] and type(rate) is rates.Rate is held['kind'] and rates.rate is rate
__import__('rates') is rates and gross.__module__ == 'rates' and gross.__globals__ is vars(rates)
__import__('unnamed').f() == 4 and sys.modules['unnamed'].__doc__ == 'Held by no name.'
__import__('parcel.part').part.n == [1] and sys.modules['parcel.part'] is package.part
checks.fits(4) and fits is checks.fits is pair[0] and checks.limit is limit and checks.most == 9 and above['limit'] is limit
'__getattr__' not in globals() and not hasattr(sys.modules['__main__'], 'nowhere')
# %% then
rates.vat = 1; limit[0] = 2
# %% check
rates.gross(10) == 20 and not checks.fits(3)
