#: top-level-await
async def f():
    return 7

print(await f())
#: await-chain
async def a():
    return 1

async def b():
    return await a() + 1

async def c():
    x = await b()
    return [x, await a()]

print(await c())
#: awaitable-class
class Ready:
    def __init__(self, v): self.v = v
    def __await__(self):
        return self.v
        yield

async def f():
    return await Ready(3) + await Ready(4)

print(await f())
#: coroutine-run-by-hand
class Ask:
    def __init__(self, q): self.q = q
    def __await__(self):
        return (yield self.q)

async def talk():
    name = await Ask("name?")
    age = await Ask("age?")
    return f"{name} is {age}"

c = talk()
print(c.send(None))
print(c.send("Ada"))
try:
    c.send(36)
except StopIteration as e:
    print(e.value)
#: coroutine-throw-by-hand
class Pause:
    def __await__(self):
        yield "paused"

async def f():
    try:
        await Pause()
    except ValueError as e:
        return f"caught {e}"

c = f()
print(c.send(None))
try:
    c.throw(ValueError("x"))
except StopIteration as e:
    print(e.value)
#: coroutine-close
class Pause:
    def __await__(self):
        yield "paused"

async def f():
    try:
        await Pause()
    finally:
        print("closing")

c = f()
c.send(None)
c.close()
print("closed")
#: async-generator
async def agen(n):
    for i in range(n):
        yield i * i

out = []
async for x in agen(4):
    out.append(x)
print(out, [x async for x in agen(3)], {x async for x in agen(3)}, {x: -x async for x in agen(3) if x})
#: async-comprehension-with-await
async def double(x):
    return x * 2

async def agen():
    yield 1
    yield 2

print([await double(x) async for x in agen()], [await double(x) for x in (5, 6)])
#: async-context-manager
class CM:
    async def __aenter__(self):
        print("enter")
        return self

    async def __aexit__(self, t, v, tb):
        print("exit", t.__name__ if t else None)
        return t is ValueError

async with CM() as cm:
    print("inside", type(cm).__name__)
async with CM():
    raise ValueError("suppressed")
print("after")
#: async-with-in-function-propagates
#: raises: KeyError
class CM:
    async def __aenter__(self):
        return 1

    async def __aexit__(self, *a):
        print("left")

async def f():
    async with CM() as x:
        raise KeyError(x)

await f()
#: async-iterator-class
class Ticker:
    def __init__(self, n): self.n = n
    def __aiter__(self): return self
    async def __anext__(self):
        if self.n == 0:
            raise StopAsyncIteration
        self.n -= 1
        return self.n

async for x in Ticker(3):
    print(x)
else:
    print("exhausted")
#: async-for-break-and-else
async def agen():
    yield 1
    yield 2

async for x in agen():
    break
else:
    print("never")
print(x)
#: async-generator-asend
async def echo():
    got = None
    while True:
        got = yield f"got {got}"

e = echo()
print(await e.asend(None), await e.asend(1), await e.__anext__())
await e.aclose()
#: async-generator-athrow
async def g():
    try:
        yield 1
    except ValueError as e:
        yield f"handled {e}"

a = g()
print(await a.__anext__(), await a.athrow(ValueError("v")))
#: anext-and-aiter
async def g():
    yield "a"

it = aiter(g())
print(await anext(it), await anext(it, "default"))
#: async-lambda-and-higher-order
async def apply(f, *xs):
    return [await f(x) for x in xs]

async def inc(x):
    return x + 1

print(await apply(inc, 1, 2, 3), await apply(lambda x: inc(x * 10), 1, 2))
#: async-method-and-property
class Client:
    def __init__(self):
        self._log = []

    async def fetch(self, url):
        self._log.append(url)
        return {"url": url, "ok": True}

    async def all(self, *urls):
        return [(await self.fetch(u))["ok"] for u in urls]

c = Client()
print(await c.all("a", "b"), c._log)
#: raising-in-coroutine
#: raises: RuntimeError
async def f():
    raise RuntimeError("inside")

async def g():
    return await f()

await g()
#: awaiting-twice
#: raises: RuntimeError
async def f():
    return 1

c = f()
print(await c)
await c
#: awaiting-nonsense
#: raises: TypeError
async def f():
    await 5

await f()
#: tiny-event-loop
#: needs: collections
from collections import deque

class Sleep:
    def __init__(self, n): self.n = n
    def __await__(self):
        for _ in range(self.n):
            yield

async def worker(name, n):
    for i in range(2):
        print(name, i)
        await Sleep(n)
    return name.upper()

def run(*coros):
    results, queue = {}, deque(enumerate(coros))
    while queue:
        i, c = queue.popleft()
        try:
            c.send(None)
        except StopIteration as e:
            results[i] = e.value
        else:
            queue.append((i, c))
    return [results[i] for i in sorted(results)]

print(run(worker("a", 1), worker("b", 3), worker("c", 2)))
#: await-in-expressions
async def v(x):
    return x

print((await v(1)) + (await v(2)), [await v(3), await v(4)], f"{await v(5)}", await v(6) if await v(True) else 0, {await v("k"): await v("v")})
print(*[await v(7)], await v(await v(8)), not await v(0), -await v(9), (await v([1, 2]))[await v(0)])
#: async-try-finally-return
async def f():
    try:
        return 1
    finally:
        print("finally")

print(await f())
#: async-contextlib
#: needs: contextlib
from contextlib import asynccontextmanager, AsyncExitStack

@asynccontextmanager
async def res(name):
    print("open", name)
    try:
        yield name
    finally:
        print("close", name)

async with AsyncExitStack() as stack:
    a = await stack.enter_async_context(res("a"))
    b = await stack.enter_async_context(res("b"))
    print(a, b)
#: nested-async-functions-and-nonlocal
async def outer():
    n = 0

    async def inc():
        nonlocal n
        n += 1
        return n

    await inc()
    await inc()
    return n

print(await outer())
#: async-generator-finally
async def g():
    try:
        yield 1
        yield 2
    finally:
        print("agen cleanup")

a = g()
async for x in a:
    break
await a.aclose()
print("done")
