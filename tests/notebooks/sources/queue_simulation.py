# %%
import heapq
import itertools
import random
from dataclasses import dataclass, field

@dataclass(order=True)
class Event:
    time: float
    order: int
    what: str = field(compare=False)

class Shop:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.events, self.order = [], itertools.count()
        self.waiting = self.served = 0
        self.busy = False
        self.at(0.0, "arrives")

    def at(self, time, what):
        heapq.heappush(self.events, Event(time, next(self.order), what))

    def run(self, until):
        while self.events and self.events[0].time <= until:
            event = heapq.heappop(self.events)
            getattr(self, event.what)(event.time)

    def arrives(self, now):
        self.at(now + self.random.expovariate(1.0), "arrives")
        self.waiting += 1
        self.serve(now)

    def leaves(self, now):
        self.busy, self.served = False, self.served + 1
        self.serve(now)

    def serve(self, now):
        if self.waiting and not self.busy:
            self.waiting, self.busy = self.waiting - 1, True
            self.at(now + self.random.expovariate(1.25), "leaves")

# %%
shop = Shop(seed=4)
shop.run(until=500)
shop.served, shop.waiting

# %%
other = Shop(seed=4)
other.run(until=1000)

# %%
shop.run(until=1000)
shop.served == other.served

# %%
assert shop.served == other.served and shop.waiting == other.waiting and len(shop.events) == len(other.events)
