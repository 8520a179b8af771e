#: bare-except-around-loop
#: threat: L7
#: from: agex: control exceptions caught
#: proves: hangs
#: ended: timeout
def spin():
    while True: pass
while True:
    try:
        spin()
    except:
        pass
#: base-exception-around-loop
#: threat: L7
#: from: agex: control exceptions caught
#: proves: hangs
#: ended: timeout
def spin():
    while True: pass
while True:
    try:
        spin()
    except BaseException:
        continue
#: finally-loop
#: threat: L7
#: from: code in finally outlives the limit
#: proves: hangs
#: ended: timeout
def spin():
    while True: pass
try:
    spin()
finally:
    spin()
#: finally-return
#: threat: L7
#: from: finally swallows by return
#: proves: hangs
#: ended: timeout
def f():
    try:
        while True: pass
    finally:
        return 1
while True:
    f()
#: finally-continue
#: threat: L7
#: from: finally swallows by continue
#: proves: hangs
#: ended: timeout
def spin():
    while True: pass
while True:
    try:
        spin()
    finally:
        continue
#: nested-handlers
#: threat: L7
#: from: one handler for each signal sent
#: proves: hangs
#: ended: timeout
def spin():
    while True: pass
def f(n):
    try:
        spin()
    except BaseException:
        f(n + 1)
f(0)
#: exit-swallows
#: threat: L7
#: from: __exit__ that returns True
#: proves: hangs
#: ended: timeout
class C:
    def __enter__(self): return self
    def __exit__(self, *a): return True
def spin():
    while True: pass
while True:
    with C():
        spin()
#: exit-loops
#: threat: L7
#: from: __exit__ that does not end
#: proves: hangs
#: ended: timeout
class C:
    def __enter__(self): return self
    def __exit__(self, *a):
        while True: pass
with C():
    while True: pass
#: aexit-swallows
#: threat: L7
#: from: __aexit__ that returns True
#: proves: hangs
#: ended: timeout
class C:
    async def __aenter__(self): return self
    async def __aexit__(self, *a): return True
def spin():
    while True: pass
while True:
    async with C():
        spin()
#: contextlib-suppress
#: threat: L7
#: from: suppress(BaseException)
#: proves: hangs
#: ended: timeout
import contextlib
def spin():
    while True: pass
while True:
    with contextlib.suppress(BaseException):
        spin()
#: contextmanager-swallows
#: threat: L7
#: from: a generator that catches
#: proves: hangs
#: ended: timeout
import contextlib
@contextlib.contextmanager
def c():
    try:
        yield
    except BaseException:
        pass
def spin():
    while True: pass
while True:
    with c():
        spin()
#: exit-stack-callbacks
#: threat: L7
#: from: callbacks that swallow
#: proves: hangs
#: ended: timeout
import contextlib
def spin():
    while True: pass
while True:
    with contextlib.ExitStack() as s:
        s.push(lambda *a: True)
        spin()
#: generator-close-catches
#: threat: L7
#: from: generators that refuse to close
#: proves: hangs
#: ended: timeout
def g():
    while True:
        try:
            yield
            while True: pass
        except BaseException:
            pass
it = g()
next(it)
while True:
    next(it)
#: del-loops
#: threat: L7
#: from: __del__ runs when the limit has passed
#: proves: hangs
#: refused: class
class D:
    def __del__(self):
        while True: pass
d = D()
d = None
while True: pass
#: del-after-the-cell
#: threat: L7
#: from: __del__ runs when the session ends
#: proves: hangs
#: refused: class
class D:
    def __del__(self):
        while True: pass
keep = D()
#: weakref-callback-loops
#: threat: L7
#: from: callbacks of weak references
#: proves: hangs
#: refused: class
import weakref
class A: pass
a = A()
def cb(_):
    while True: pass
w = weakref.ref(a, cb)
del a
#: weakref-finalize
#: threat: L7
#: from: finalizers at exit
#: proves: hangs
#: refused: import
import weakref
class A: pass
a = A()
def cb():
    while True: pass
weakref.finalize(a, cb)
del a
#: atexit-loop
#: threat: L7
#: from: functions at exit
#: proves: hangs
#: refused: import
import atexit
def f():
    while True: pass
atexit.register(f)
f()
#: thread-outlives
#: threat: L7
#: from: a thread of its own
#: proves: hangs
#: refused: import
import threading
def f():
    while True: pass
threading.Thread(target=f).start()
#: thread-by-executor
#: threat: L7
#: from: threads by concurrent.futures
#: proves: hangs
#: refused: import
import concurrent.futures
def f():
    while True: pass
concurrent.futures.ThreadPoolExecutor().submit(f).result()
#: signal-handler
#: threat: L7
#: from: signal handlers set by code
#: proves: hangs
#: refused: import
import signal
signal.signal(signal.SIGALRM, signal.SIG_IGN)
while True: pass
#: settrace-none
#: threat: L7
#: from: tracing switched off
#: proves: hangs
#: refused: import
import sys
sys.settrace(None)
while True: pass
#: except-star
#: threat: L7
#: from: except* catches BaseException
#: proves: hangs
#: ended: timeout
def spin():
    while True: pass
while True:
    try:
        spin()
    except* BaseException:
        pass
#: except-by-computed-class
#: threat: L7
#: from: classes of handlers computed
#: proves: hangs
#: ended: timeout
def spin():
    while True: pass
kinds = [BaseException]
while True:
    try:
        spin()
    except tuple(kinds):
        pass
#: except-class-with-own-subclasscheck
#: threat: L7
#: from: handlers whose class says yes
#: proves: hangs
#: ended: timeout
class M(type):
    def __subclasscheck__(cls, c): return True
    def __instancecheck__(cls, o): return True
class E(BaseException, metaclass=M): pass
def spin():
    while True: pass
while True:
    try:
        spin()
    except E:
        pass
#: keyboard-interrupt-and-system-exit
#: threat: L7
#: from: signals that are those of Python
#: proves: hangs
#: ended: timeout
def spin():
    while True: pass
while True:
    try:
        spin()
    except (KeyboardInterrupt, SystemExit, GeneratorExit, TimeoutError, MemoryError, RecursionError):
        pass
#: raise-over-it
#: threat: L7
#: from: another exception raised over it
#: proves: hangs
#: ended: timeout
def spin():
    while True: pass
while True:
    try:
        try:
            spin()
        finally:
            raise ValueError
    except ValueError:
        pass
#: loop-in-repr
#: threat: L7
#: from: hostile repr when the host looks
#: proves: hangs
#: ended: timeout
class A:
    def __repr__(self):
        while True: pass
A()
#: loop-in-str-of-exception
#: threat: L7
#: from: hostile str of an exception
#: proves: hangs
#: ended: timeout
class E(Exception):
    def __str__(self):
        while True: pass
raise E
#: loop-in-html-repr
#: threat: L7
#: from: hostile _repr_html_
#: proves: hangs
#: ended: timeout
class A:
    def _repr_html_(self):
        while True: pass
A()
#: loop-in-eq
#: threat: L7
#: from: comparisons that do not end
#: proves: hangs
#: ended: timeout
class A:
    def __eq__(self, o):
        while True: pass
    def __hash__(self): return 1
A() in [A()]
#: loop-in-sort-key
#: threat: L7
#: from: keys that do not end
#: proves: hangs
#: ended: timeout
def key(x):
    while True: pass
sorted([1, 2], key=key)
#: loop-in-getattr
#: threat: L7
#: from: attribute hooks that do not end
#: proves: hangs
#: ended: timeout
class A:
    def __getattr__(self, n):
        while True: pass
A().x
#: loop-in-await
#: threat: L7
#: from: coroutines that never end
#: proves: hangs
#: ended: timeout
class W:
    def __await__(self):
        while True:
            yield
await W()
#: async-generator-never-ends
#: threat: L7
#: from: asynchronous loops
#: proves: hangs
#: ended: timeout
async def g():
    while True:
        yield 1
async for x in g():
    pass
#: sleep-for-ever
#: threat: L7
#: from: time.sleep
#: proves: hangs
#: ended: timeout
import time
time.sleep(10**6)
#: recursive-handler-chain
#: threat: L7
#: from: handlers within handlers
#: proves: hangs
#: ended: timeout
def f():
    try:
        f()
    except BaseException:
        f()
    finally:
        f()
f()
#: mutual-generators
#: threat: L7
#: from: generators that resume one another
#: proves: hangs
#: ended: timeout
def a():
    while True:
        yield from b()
def b():
    yield 1
for _ in a(): pass
#: raise-in-handler-loop
#: threat: L7
#: from: a loop that lives in the handler
#: proves: hangs
#: ended: timeout
try:
    1 / 0
except ZeroDivisionError:
    while True:
        try:
            raise ValueError
        except ValueError:
            pass
#: close-of-what-a-generator-goes-through
#: threat: L7
#: from: a generator that is dropped closes what it yields from
#: proves: hangs
#: harmless: what the code made is not called when its cell is over
class Numbers:
    def __iter__(self):
        return self
    def __next__(self):
        return 1
    def close(self):
        while True:
            pass
def numbers():
    yield from Numbers()
left = numbers()
next(left)
#: attribute-of-what-a-generator-goes-through
#: threat: L7
#: from: a generator that is dropped looks for `close`
#: proves: hangs
#: harmless: what the code made is not called when its cell is over
class Numbers:
    def __iter__(self):
        return self
    def __next__(self):
        return 1
    def __getattr__(self, name):
        while True:
            pass
left = (lambda: (yield from Numbers()))()
next(left)
#: close-of-what-a-coroutine-waits-for
#: threat: L7
#: from: a coroutine that is dropped closes what it waits for
#: proves: hangs
#: harmless: what the code made is not called when its cell is over
class Steps:
    def __await__(self):
        return self
    __iter__ = __await__
    def __next__(self):
        return None
    def close(self):
        while True:
            pass
async def wait():
    await Steps()
left = wait()
left.send(None)
#: close-of-what-a-task-waits-for
#: threat: L7
#: from: a coroutine that is dropped closes what it waits for
#: proves: hangs
#: harmless: what the code made is not called when its cell is over
import asyncio
class Steps:
    def __await__(self):
        return self
    __iter__ = __await__
    def __next__(self):
        return None
    def close(self):
        while True:
            pass
async def wait():
    await asyncio.gather(Steps())
left = asyncio.create_task(wait())
await asyncio.sleep(0.01)
#: close-of-what-is-entered
#: threat: L7
#: from: a coroutine that is dropped closes what it waits for
#: proves: hangs
#: harmless: what the code made is not called when its cell is over
class Steps:
    def __aenter__(self):
        return self
    async def __aexit__(self, *how):
        pass
    __iter__ = __await__ = __aenter__
    def __next__(self):
        return None
    def close(self):
        while True:
            pass
async def enter():
    async with Steps():
        pass
left = enter()
left.send(None)
#: close-of-what-is-stepped-through
#: threat: L7
#: from: a coroutine that is dropped closes what it waits for
#: proves: hangs
#: harmless: what the code made is not called when its cell is over
class Steps:
    def __aiter__(self):
        return self
    __iter__ = __await__ = __anext__ = __aiter__
    def __next__(self):
        return None
    def close(self):
        while True:
            pass
async def step():
    async for one in Steps():
        pass
left = step()
left.send(None)
