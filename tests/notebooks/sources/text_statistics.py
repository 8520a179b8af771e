# %% [markdown]
# # Words and lengths

# %%
text = """
It was the best of days, it was the worst of nights; the river ran, the bridge stood,
and the old ferryman counted boats until the lamps went out.
"""

# %%
import re
from collections import Counter

words = re.findall(r"[a-z]+", text.lower())
counts = Counter(words)
counts.most_common(3)

# %%
class Vocabulary:
    def __init__(self, words):
        self._places = {word: place for place, word in enumerate(dict.fromkeys(words))}

    def __len__(self):
        return len(self._places)

    def encode(self, sentence):
        return [self._places.get(word, -1) for word in sentence.split()]

vocabulary = Vocabulary(words)
len(vocabulary)

# %%
class Reversible(Vocabulary):
    def decode(self, numbers):
        back = list(self._places)
        return " ".join(back[number] if number >= 0 else "?" for number in numbers)

both = Reversible(words)
encoded = both.encode("the old river sang")
encoded

# %%
both.decode(encoded)

# %%
lengths = Counter(map(len, words))
for length in sorted(lengths):
    print(f"{length:2} {'#' * lengths[length]}")

# %%
assert isinstance(both, Vocabulary) and both.decode(both.encode("the river")) == "the river"
