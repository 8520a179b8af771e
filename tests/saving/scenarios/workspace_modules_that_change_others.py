# %%
import pathlib
pathlib.Path('effects.py').write_text('''
import copyreg, json as of_json, string
of_json.mark = [1]
class Fixed:
    def __init__(self, n): self.n = n
def fixed(one): return Fixed, (one.n,)
copyreg.pickle(Fixed, fixed)
class Missing:
    def __reduce__(self): return 'MISSING'
MISSING = Missing()
def install():
    import textwrap as wrapping
    wrapping.TextWrapper.extra = property(lambda self: 'e')
    string.digits2 = '01'
''')
import effects, json, string, textwrap, copyreg
effects.install()
mark = json.mark; missing = effects.MISSING; one = effects.Fixed(3)
class Absent:
    def __reduce__(self): return 'ABSENT'
ABSENT = Absent(); absent = [ABSENT]
# %% check
json.mark is mark and mark == [1] and string.digits2 == '01' and textwrap.TextWrapper().extra == 'e'
copyreg.dispatch_table[effects.Fixed] is effects.fixed and one.n == 3
missing is effects.MISSING and type(missing) is effects.Missing and absent[0] is ABSENT
