class A:
    def __init__(self):
        self._p = 4
        self.__q = 5

    @property
    def p(self):
        return self._p + self.__q

    @p.setter
    def p(self, value):
        self._p = value


a = A()
a.p = 5
print(a.p, a._p, a._A__q, a.__dict__, type(a).__name__, a.__class__.__name__)
a.missing
