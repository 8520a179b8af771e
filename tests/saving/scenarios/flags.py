# %%
import enum, dataclasses
class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()
    BOTH = READ | WRITE
    RUN = enum.auto()
class Stage(enum.Enum):
    DRAFT = 1
@dataclasses.dataclass
class Doc:
    title: str
doc = Doc('a'); rights = Access.READ | Access.RUN; every = Access.BOTH | Access.RUN
class Code(enum.IntFlag):
    A = 1
    B = 2
codes = {Code.A | Code.B: 'both', Code(8): 'more'}
# %% check
rights is Access.READ | Access.RUN and every.value == 7 and Access.READ in rights and Access.WRITE not in rights
Access(3) is Access.BOTH and list(Access) == [Access.READ, Access.WRITE, Access.RUN]
codes[Code(3)] == 'both' and codes[Code(8)] == 'more' and (Code.A | 4).value == 5
Stage.DRAFT.value == 1 and doc == Doc('a')
