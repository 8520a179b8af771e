# lost: task | a task | await it
# lost: loop | event loop | get_running_loop
# lost: coro | not awaited | 
# lost: future | | 
# %%
import asyncio
q = asyncio.Queue(); q.put_nowait(1); q.put_nowait(2)
lock = asyncio.Lock(); ev = asyncio.Event(); ev.set(); sem = asyncio.Semaphore(2)
async def f(): return await q.get()
first = await f()
task = asyncio.get_running_loop().create_task(asyncio.sleep(0)) if False else asyncio.ensure_future(asyncio.sleep(0))
await task
loop = asyncio.get_event_loop()
future = loop.create_future()
coro = f()
class Acm:
    async def __aenter__(self): return 5
    async def __aexit__(self, *a): pass
async with Acm() as five: pass
# %% then
second = await f()
async with lock: pass
# %% check
(first, second, five) == (1, 2, 5) and ev.is_set() and sem._value == 2
