# %%
import networkx as nx

club = nx.karate_club_graph()
club.number_of_nodes(), club.number_of_edges()

# %%
central = nx.betweenness_centrality(club)
top = sorted(central, key=central.get, reverse=True)[:3]
top

# %%
communities = list(nx.community.greedy_modularity_communities(club))
[len(one) for one in communities]

# %%
path = nx.shortest_path(club, 16, 26)
path

# %%
import matplotlib.pyplot as plt

colours = [next(n for n, one in enumerate(communities) if node in one) for node in club]
nx.draw(club, nx.spring_layout(club, seed=1), node_color=colours, node_size=40, width=0.3)

# %%
club.add_edge(16, 26)
assert nx.shortest_path(club, 16, 26) == [16, 26] and len(path) > 2 and top[0] == 0
