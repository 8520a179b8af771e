# %%
class Left:
    def other(self): return Right()
class Right:
    def other(self): return Left()
Left.peer = Right; Right.peer = Left
Left.instance = Left(); Left.maker = Right.other
one = Left.instance
# %% check
Left.peer is Right and Right.peer is Left and type(one.other()) is Right and one is Left.instance
Left.maker is Right.other
