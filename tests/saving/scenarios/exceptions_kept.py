# lost: traceback of caught | traceback | format_exc
# lost: traceback of chained | traceback | format_exc
# lost: traceback of group | traceback | format_exc
# %%
import traceback
class Odd(Exception):
    def __init__(self, code, *, detail): super().__init__(f'{code}: {detail}'); self.code = code; self.detail = detail
def boom(): raise Odd(3, detail='x')
try:
    boom()
except Odd as e: caught = e
try:
    try: {}['k']
    except KeyError as k: raise ValueError('outer') from k
except ValueError as e: chained = e; e.add_note('a note')
try: raise ExceptionGroup('g', [ValueError(1), TypeError('t')])
except ExceptionGroup as e: group = e
fresh = FileNotFoundError(2, 'No such file', 'f.txt')
try: 'é'.encode('ascii')
except UnicodeEncodeError as e: uni = e.with_traceback(None)
plain = RuntimeError('a', 1)
# %% check
caught.code == 3 and caught.detail == 'x' and str(caught) == '3: x' and type(caught) is Odd
str(chained) == 'outer' and isinstance(chained.__cause__, KeyError) and chained.__notes__ == ['a note']
group.message == 'g' and [type(x) for x in group.exceptions] == [ValueError, TypeError]
fresh.errno == 2 and fresh.filename == 'f.txt' and type(fresh) is FileNotFoundError
uni.encoding == 'ascii' and plain.args == ('a', 1)
traceback.format_exc() == 'NoneType: None\n'
