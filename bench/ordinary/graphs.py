"""Dijkstra with a heap, breadth first search with a deque, union and find, topological order."""

import heapq
from collections import deque


class Graph:
    def __init__(self):
        self.edges = {}

    def connect(self, a, b, weight):
        self.edges.setdefault(a, []).append((b, weight))
        self.edges.setdefault(b, []).append((a, weight))

    def distances(self, start):
        found = {start: 0}
        queue = [(0, start)]
        while queue:
            distance, node = heapq.heappop(queue)
            if distance > found.get(node, float("inf")):
                continue
            for other, weight in self.edges.get(node, []):
                further = distance + weight
                if further < found.get(other, float("inf")):
                    found[other] = further
                    heapq.heappush(queue, (further, other))
        return found

    def levels(self, start):
        level = {start: 0}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for other, _ in self.edges[node]:
                if other not in level:
                    level[other] = level[node] + 1
                    queue.append(other)
        return level


class Sets:
    def __init__(self, n):
        self.parent = list(range(n))

    def find(self, x):
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def join(self, a, b):
        self.parent[self.find(a)] = self.find(b)


graph, sets = Graph(), Sets(1500)
for i in range(1500):
    for step in (1, 7, 31):
        graph.connect(i, (i * step + step) % 1500, i * step % 17 + 1)
    if i % 3:
        sets.join(i, i - 1)
distances = graph.distances(0)
result = sum(distances.values()), max(graph.levels(0).values()), len({sets.find(i) for i in range(1500)})
