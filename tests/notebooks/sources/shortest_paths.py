# %%
import heapq
from collections import defaultdict

roads = [("a", "b", 4), ("a", "c", 1), ("c", "b", 2), ("b", "d", 5), ("c", "d", 8), ("d", "e", 3)]
graph = defaultdict(dict)
for one, other, miles in roads:
    graph[one][other] = graph[other][one] = miles
dict(graph["a"])

# %%
def distances(start):
    best, queue = {start: (0, None)}, [(0, start)]
    while queue:
        so_far, place = heapq.heappop(queue)
        if so_far > best[place][0]:
            continue
        for neighbour, miles in graph[place].items():
            total = so_far + miles
            if neighbour not in best or total < best[neighbour][0]:
                best[neighbour] = (total, place)
                heapq.heappush(queue, (total, neighbour))
    return best

# %%
table = distances("a")
table

# %%
def route(table, place):
    way = [place]
    while (before := table[way[-1]][1]) is not None:
        way.append(before)
    return way[::-1]

" > ".join(route(table, "e"))

# %%
graph["b"]["e"] = graph["e"]["b"] = 1
shorter = distances("a")
assert table["e"][0] == 11 and shorter["e"][0] == 4 and graph["nowhere"] == {}
