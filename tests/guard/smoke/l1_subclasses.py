# L3 refused: type
for kind in object.__subclasses__():
    print(kind)
