# lost: token | a token | set
# lost: ctx | a context | its variables
# changes: holder, v | the context that one of them held is lost
# %%
import contextvars
v = contextvars.ContextVar('v', default=1); u = contextvars.ContextVar('u')
token = v.set(5)
ctx = contextvars.copy_context()
holder = {'v': v}
unset = contextvars.ContextVar('unset', default='d')
# %% check
v.get() == 5 and v.name == 'v' and holder['v'] is v and unset.get() == 'd'
# %% then
try:
    u.get()
    had = True
except LookupError: had = False
# %% check
had is False
