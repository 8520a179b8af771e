# %% [markdown]
# # What a cell can show

# %%
class Badge:
    def __init__(self, text):
        self.text = text

    def _repr_html_(self):
        return f"<b style='color:teal'>{self.text}</b>"

Badge("ready")

# %%
from IPython.display import HTML, Markdown, display

for level in range(3):
    display(Markdown(f"- level {level}"))
HTML("<table><tr><td>1</td><td>2</td></tr></table>")

# %%
import sys

print("to stdout")
print("to stderr", file=sys.stderr)

# %%
import pandas as pd

styled = pd.DataFrame({"a": [1, 2], "b": [3.5, None]})
display(styled)
styled["b"].isna().sum()

# %%
badges = {text: Badge(text) for text in ("a", "b")}
badges["a"].peer = badges["b"]
badges["b"].peer = badges["a"]

# %%
assert badges["a"].peer.peer is badges["a"]
None
