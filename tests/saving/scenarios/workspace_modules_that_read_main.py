# %%
import pathlib
pathlib.Path('checks.py').write_text('from __main__ import limit\nimport __main__\nmost = __main__.most[0]\ndef fits(n): return n < limit[0]\n')
limit = [5]; most = [9]
import checks
# %%
checks.fits(3)
# %%
fits = checks.fits
zone = {'limit': limit, 'fits': fits}; a = [zone]
# %% then
limit[0] = 3
# %% check
checks.fits(2) and not checks.fits(4) and checks.limit is limit is a[0]['limit'] and checks.most == 9 and fits is checks.fits
'__getattr__' not in globals()
