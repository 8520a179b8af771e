#: import-os
#: threat: L4
#: from: a module that was not granted
#: proves: canary
#: refused: import
import os
result = os.environ['CANARY']
#: import-from-os
#: threat: L4
#: from: a module that was not granted
#: proves: canary
#: refused: import
from os import environ
result = environ['CANARY']
#: import-as
#: threat: L4
#: from: a module under another name
#: proves: canary
#: refused: import
import os as math
result = math.environ['CANARY']
#: import-os-path
#: threat: L4
#: from: submodules lead to the parent
#: proves: canary
#: refused: import
import os.path
result = os.environ['CANARY']
#: import-posixpath
#: threat: L4
#: from: modules under other names
#: proves: canary
#: refused: import
import posixpath
result = posixpath.os.environ['CANARY']
#: import-host-module
#: threat: L4
#: from: modules of the host program
#: proves: canary
#: refused: import
import vaults
result = vaults.CANARY
#: dunder-import
#: threat: L4
#: from: __import__
#: proves: canary
#: refused: import
result = __import__('vaults').CANARY
#: dunder-import-by-nfkc
#: threat: L4
#: from: identifiers normalised after the check
#: proves: canary
#: refused: import
result = __ｉmport__('vaults').CANARY
#: builtins-import
#: threat: L4
#: from: import builtins
#: proves: canary
#: refused: import
import builtins
result = builtins.__import__('vaults').CANARY
#: dunder-builtins
#: threat: L4
#: from: __builtins__ of a module
#: proves: canary
#: refused: name
b = __builtins__
result = (b if isinstance(b, dict) else b.__dict__)['__import__']('vaults').CANARY
#: globals-builtins
#: threat: L4
#: from: globals() shows __builtins__
#: proves: canary
#: refused: import
b = globals().get('__builtins__') or vars(__import__('builtins'))
result = (b if isinstance(b, dict) else vars(b))['__import__']('vaults').CANARY
#: vars-builtins
#: threat: L4
#: from: vars() without argument
#: proves: canary
#: refused: builtin
exec('', d := {})
b = vars().get('__builtins__', d['__builtins__'])
result = (b if isinstance(b, dict) else vars(b))['__import__']('vaults').CANARY
#: locals-builtins
#: threat: L4
#: from: locals() at module level
#: proves: canary
#: refused: builtin
exec('', d := {})
b = locals().get('__builtins__', d['__builtins__'])
result = (b if isinstance(b, dict) else vars(b))['__import__']('vaults').CANARY
#: importlib
#: threat: L4
#: from: importlib
#: proves: canary
#: refused: import
import importlib
result = importlib.import_module('vaults').CANARY
#: importlib-util
#: threat: L4
#: from: importlib
#: proves: canary
#: refused: import
import importlib.util
result = importlib.util.find_spec('vaults').loader.load_module('vaults').CANARY
#: sys-modules
#: threat: L4
#: from: sys.modules
#: proves: canary
#: refused: import
import sys
result = sys.modules['vaults'].CANARY
#: transitive-module
#: threat: L4
#: from: agex, smolagents: modules that are members of granted modules
#: proves: canary
#: refused: import
import toolbox
result = toolbox.os.environ['CANARY']
#: transitive-from-import
#: threat: L4
#: from: from-import of a module's modules
#: proves: canary
#: refused: import
from toolbox import os
result = os.environ['CANARY']
#: transitive-submodule-import
#: threat: L4
#: from: import of a module's modules
#: proves: canary
#: refused: import
#: plain: a module's modules are no submodules, as CPython says itself
import toolbox.os
result = toolbox.os.environ['CANARY']
#: star-import
#: threat: L4
#: from: star imports bring modules
#: proves: canary
#: harmless: the stand-in of a module holds nothing but members
from toolbox import *
result = os.environ['CANARY']
#: random-os
#: threat: L4
#: from: random imports os
#: proves: canary
#: refused: attribute
import random
result = random._os.environ['CANARY']
#: statistics-sys
#: threat: L4
#: from: statistics imports sys
#: proves: canary
#: refused: import
import statistics
result = statistics.sys.modules['vaults'].CANARY
#: dataclasses-sys
#: threat: L4
#: from: smolagents CVE of 2025: modules of modules
#: proves: canary
#: refused: import
import dataclasses
result = dataclasses.sys.modules['vaults'].CANARY
#: collections-sys
#: threat: L4
#: from: modules of modules
#: proves: canary
#: refused: attribute
import collections
result = collections._sys.modules['vaults'].CANARY
#: typing-sys
#: threat: L4
#: from: modules of modules
#: proves: canary
#: refused: import
import typing
result = typing.sys.modules['vaults'].CANARY
#: enum-sys
#: threat: L4
#: from: modules of modules
#: proves: canary
#: refused: import
import enum
result = enum.sys.modules['vaults'].CANARY
#: json-codecs
#: threat: L4
#: from: json leads to codecs
#: proves: canary
#: refused: attribute
import json
result = json.codecs.builtins.__import__('vaults').CANARY
#: re-enum-sys
#: threat: L4
#: from: re leads to enum
#: proves: canary
#: refused: import
import re
result = re.enum.sys.modules['vaults'].CANARY
#: datetime-sys
#: threat: L4
#: from: datetime, in Python
#: proves: canary
#: refused: import
#: python: 3.12
import _pydatetime
result = _pydatetime.sys.modules['vaults'].CANARY
#: decimal-sys
#: threat: L4
#: from: decimal, in Python
#: proves: canary
#: refused: import
#: plain: this Python may be without it, or names its modules otherwise
import _pydecimal
result = _pydecimal._sys.modules['vaults'].CANARY
#: string-re
#: threat: L4
#: from: string leads to re and on
#: proves: canary
#: refused: attribute
#: plain: as above
import string
result = string._re.enum.sys.modules['vaults'].CANARY
#: textwrap-re
#: threat: L4
#: from: textwrap leads to re and on
#: proves: canary
#: refused: import
import textwrap
result = textwrap.re.enum.sys.modules['vaults'].CANARY
#: module-loader
#: threat: L4
#: from: every module knows its loader
#: proves: canary
#: refused: attribute
import json, toolbox
result = json.__loader__.get_data(toolbox.WHERE)
#: module-spec
#: threat: L4
#: from: every module knows its specification
#: proves: canary
#: refused: attribute
import json
result = json.__spec__.loader.__class__.__init__.__globals__['sys'].modules['vaults'].CANARY
#: module-builtins
#: threat: L4
#: from: every Python module has __builtins__
#: proves: canary
#: refused: attribute
import json
result = json.__builtins__['__import__']('vaults').CANARY
#: module-getattr
#: threat: L4
#: from: getattr on modules
#: proves: canary
#: refused: attribute
import json
result = getattr(json, '__builtins__')['__import__']('vaults').CANARY
#: function-of-module-globals
#: threat: L4
#: from: functions of granted modules
#: proves: canary
#: refused: attribute
import json
result = json.dumps.__globals__['__builtins__']['__import__']('vaults').CANARY
#: class-of-module-globals
#: threat: L4
#: from: classes of granted modules
#: proves: canary
#: refused: attribute
import json
result = json.JSONDecoder.decode.__globals__['__builtins__']['__import__']('vaults').CANARY
#: textwrap-class-globals
#: threat: L4
#: from: classes of granted modules
#: proves: canary
#: refused: attribute
import textwrap
result = textwrap.TextWrapper.wrap.__globals__['__builtins__']['__import__']('vaults').CANARY
#: help-imports
#: threat: L4
#: from: help() imports what it is asked for
#: proves: canary
#: refused: import
import pydoc
result = pydoc.locate('vaults.CANARY')
#: pkgutil-resolve-name
#: threat: L4
#: from: names resolved by pkgutil
#: proves: canary
#: refused: import
import pkgutil
result = pkgutil.resolve_name('vaults:CANARY')
#: logging-resolve
#: threat: L4
#: from: logging.config resolves names
#: proves: canary
#: refused: import
import logging.config
result = logging.config.BaseConfigurator({}).resolve('vaults.CANARY')
#: unittest-mock-importer
#: threat: L4
#: from: mock imports by path
#: proves: canary
#: refused: import
import unittest.mock
result = unittest.mock._get_target('vaults.CANARY')[0]().CANARY
#: encodings-codecs-lookup
#: threat: L4
#: from: codecs imports by name
#: proves: canary
#: refused: attribute
import codecs
result = codecs.lookup('utf-8').encode.__self__ if False else codecs.builtins.__import__('vaults').CANARY
#: ctypes
#: threat: L4
#: from: memory by ctypes
#: proves: canary
#: refused: import
import ctypes
result = ctypes.py_object.from_address(id(vault)) and vault._secret
#: gc-objects
#: threat: L4
#: from: all objects by gc
#: proves: canary
#: refused: import
import gc
result = [o.__dict__ for o in gc.get_objects() if type(o).__name__ == 'Vault']
#: gc-referents
#: threat: L4
#: from: the dict of an object by gc
#: proves: canary
#: refused: import
import gc
class A: pass
a = A(); a.v = vault
result = [getattr(vault, '_secret')] and gc.get_referents(vault) + [vars(vault)]
#: linecache-reads-files
#: threat: L4
#: from: files by linecache
#: proves: canary
#: refused: import
import linecache, toolbox
result = linecache.getlines(toolbox.WHERE)
#: open-builtin
#: threat: L4
#: from: open
#: proves: canary
#: refused: builtin
import toolbox
result = open(toolbox.WHERE).read()
#: io-open
#: threat: L4
#: from: open by io
#: proves: canary
#: refused: import
import io, toolbox
result = io.open(toolbox.WHERE).read()
#: io-fileio
#: threat: L4
#: from: files by io
#: proves: canary
#: refused: import
import io, toolbox
result = io.FileIO(toolbox.WHERE).read()
#: io-open-code
#: threat: L4
#: from: files by io
#: proves: canary
#: refused: import
import io, toolbox
result = io.open_code(toolbox.WHERE).read()
#: pathlib
#: threat: L4
#: from: files by pathlib
#: proves: canary
#: refused: builtin
import pathlib, toolbox
result = pathlib.Path(toolbox.WHERE).read_text()
#: fileinput-and-codecs-open
#: threat: L4
#: from: files by codecs
#: proves: canary
#: refused: import
import codecs, toolbox
result = codecs.open(toolbox.WHERE, encoding='utf8').read()
#: hashlib-file-digest
#: threat: L4
#: from: files by hashlib
#: proves: canary
#: refused: builtin
import hashlib, io, toolbox
result = hashlib.file_digest(open(toolbox.WHERE, 'rb'), 'md5') and open(toolbox.WHERE).read()
#: subprocess
#: threat: L4
#: from: a process
#: proves: canary
#: refused: import
import subprocess, toolbox
result = subprocess.run(['cat', toolbox.WHERE], capture_output=True).stdout
#: uuid-getnode-os
#: threat: L4
#: from: uuid leads to os
#: proves: canary
#: refused: import
import uuid
result = uuid.os.environ['CANARY']
#: heapq-bisect-module-globals
#: threat: L4
#: from: functions of granted modules
#: proves: canary
#: refused: attribute
import bisect, heapq
result = heapq.merge.__globals__['__builtins__']['__import__']('vaults').CANARY
#: relative-import
#: threat: L4
#: from: relative imports
#: proves: canary
#: refused: import
#: plain: there is no package to be relative to
from . import vaults
result = vaults.CANARY
#: import-in-class-and-function
#: threat: L4
#: from: imports in other scopes
#: proves: canary
#: refused: import
def f():
    class A:
        import vaults
    return A.vaults.CANARY
result = f()
#: import-error-module-name
#: threat: L4
#: from: ImportError says where a module lies
#: proves: canary
#: refused: import
try:
    from toolbox import nothing
except ImportError as e:
    result = [e.path, __import__(e.name)._hidden]
