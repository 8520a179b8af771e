# %%
import asyncio
import time

async def fetch(name, seconds):
    await asyncio.sleep(seconds)
    return f"{name}: {len(name)}"

# %%
began = time.perf_counter()
answers = await asyncio.gather(*(fetch(name, 0.05) for name in ("one", "three", "eleven")))
took = time.perf_counter() - began
answers

# %%
async def numbers(limit):
    for n in range(limit):
        await asyncio.sleep(0)
        yield n * n

squares = [n async for n in numbers(6)]
squares

# %%
class Gate:
    async def __aenter__(self):
        self.open = True
        return self

    async def __aexit__(self, *_):
        self.open = False

async with Gate() as gate:
    inside = gate.open

# %%
assert took < 0.14 and inside and not gate.open and squares[-1] == 25
