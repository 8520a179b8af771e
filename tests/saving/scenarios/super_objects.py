# %%
class Base:
    def fee(self): return 1
    @classmethod
    def made(cls): return cls.__name__
class Own(Base):
    def fee(self): return 2
own = Own()
above, of_class, unbound = super(Own, own), super(Own, Own), super(Own)
held = {'method': above.fee, 'of': [above]}
class Misleading(Base):
    __thisclass__ = __self__ = None
    def look(self): return super()
odd = Misleading().look()
# %% check
above.fee() == 1 and above.__self__ is own and of_class.made() == 'Own' and held['method']() == 1 and held['of'][0] is above
unbound.__self__ is None and unbound.__thisclass__ is Own and unbound.__get__(own).fee() == 1
odd.fee() == 1
