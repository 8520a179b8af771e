# changes: missed, tagged, uses | the object of an AttributeError is left out
# %%
import contextvars, datetime, random, threading, weakref
class Labelled(property):
    def __init__(self, fget, label): super().__init__(fget); self.label = label
class Static(staticmethod): pass
class Maker(classmethod):
    def __init__(self, made, tag): super().__init__(made); self.tag = tag
class Uses:
    seven = Labelled(lambda self: 7, 'in a class')
    who = Maker(lambda cls: cls, 't')
alone = Labelled(lambda self: 2, 'alone'); static = Static(len); static.note = [1]
uses = Uses()
class Tagged(weakref.ref):
    __slots__ = ('tag',)
    def __new__(cls, of, tag): return super().__new__(cls, of)
    def __init__(self, of, tag): super().__init__(of); self.tag = tag
tagged = Tagged(uses, 't')
class Local(threading.local):
    def __init__(self, start): self.start = start
local = Local(9); local.start = 10
seen = []
class Group(ExceptionGroup):
    def __new__(cls, message, some, code): made = super().__new__(cls, message, some); made.code = code; return made
    def derive(self, some): return Group(self.message, some, self.code)
group = Group('m', [ValueError(3)], 7)
variable = contextvars.ContextVar('variable'); variable.set({'k': 1}); held = variable.get()
class Zone(datetime.tzinfo):
    def utcoffset(self, when): return datetime.timedelta(hours=3)
zone = Zone(); when = datetime.datetime(2020, 1, 1, tzinfo=zone); clock = datetime.time(3, tzinfo=zone)
dice = random.SystemRandom()
try: uses.nothing
except AttributeError as error: missed = error.with_traceback(None)
try: nothing_here
except NameError as error: unnamed = error.with_traceback(None)
# %% check
alone.label == 'alone' and alone.fget(0) == 2 and type(alone) is Labelled and static([1]) == 1 and static.note == [1]
uses.seven == 7 and vars(Uses)['seven'].label == 'in a class' and Uses.who() is Uses and vars(Uses)['who'].tag == 't'
tagged() is uses and tagged.tag == 't' and type(tagged) is Tagged
local.start == 10 and type(local) is Local
group.code == 7 and group.args == ('m', group.args[1], 7) and type(group.split(ValueError)[0]) is Group
variable.get() is held and when.tzinfo is zone is clock.tzinfo and 0 <= dice.random() < 1
missed.name == 'nothing' and unnamed.name == 'nothing_here'
# %% then
thread = threading.Thread(target=lambda: seen.append(local.start)); thread.start(); thread.join(); del thread
# %% check
seen == [9]
