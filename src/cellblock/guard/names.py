"""Names by kind: what may be bound, read and defined, and which names no code reaches."""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """The names in a text."""
    return frozenset(text.split())


FRAMES = names(
    "gi_frame gi_code gi_yieldfrom gi_running gi_suspended cr_frame cr_code cr_await cr_origin cr_running "
    "cr_suspended ag_frame ag_code ag_await ag_running ag_suspended tb_frame tb_next tb_lasti tb_lineno f_back "
    "f_builtins f_code f_globals f_lasti f_lineno f_locals f_trace f_trace_lines f_trace_opcodes co_code co_consts "
    "co_names"
)
"""Public names of the interpreter's own objects."""

TYPES = names("__subclasses__ __mro__ __bases__ __base__ __subclasshook__ __mro_entries__ mro")

_OPERATORS = names(
    "add sub matmul truediv floordiv divmod and or xor neg pos abs invert radd rsub rmatmul rtruediv rfloordiv "
    "rdivmod rand ror rxor iadd isub imatmul itruediv ifloordiv iand ior ixor eq ne lt le gt ge hash bool int float "
    "complex index round trunc floor ceil len length_hint getitem setitem delitem missing contains iter next reversed "
    "call enter exit aenter aexit await aiter anext repr str bytes format sizeof"
)
_HEAVY = names("mul rmul imul pow rpow ipow mod rmod imod lshift rlshift ilshift rshift rrshift irshift")

OPERATIONS = frozenset(f"__{name}__" for name in _OPERATORS)
"""Methods behind syntax whose result is no larger than the operands: they may be called by name on built-in values."""

HEAVY = frozenset(f"__{name}__" for name in _HEAVY)
"""Methods behind operators whose result may be far larger than the operands, or that mean formatting."""

DESCRIBING = names("__name__ __qualname__ __doc__ __module__")

_HOOKS = names(
    "__init__ __new__ __post_init__ __init_subclass__ __set_name__ __get__ __set__ __delete__ __getattr__ "
    "__getattribute__ __setattr__ __delattr__ __dir__ __class_getitem__"
)
"""Hooks for making classes and for looking up their attributes."""

HOOKS = names("__instancecheck__ __subclasscheck__ __subclasshook__ __prepare__ __mro_entries__")
"""Methods that Python asks about classes that may be anybody's: defined only where a policy has "hooks"."""

CALLED = (
    OPERATIONS | HEAVY | HOOKS | _HOOKS | names("__copy__ __deepcopy__ __replace__ _missing_ _generate_next_value_")
)
"""Methods that the interpreter calls by itself, and its library."""

ERROR_PARTS = names("__cause__ __context__ __suppress_context__ __notes__")
"""Attributes that an exception has beside its arguments."""

TYPING = names(
    "__origin__ __args__ __parameters__ __bound__ __constraints__ __value__ __type_params__ __metadata__ "
    "__supertype__ __forward_arg__ __default__ __covariant__ __contravariant__"
)
"""Attributes of annotations."""

DEFINABLE = (
    OPERATIONS
    | HEAVY
    | DESCRIBING
    | _HOOKS
    | names(
        "__instancecheck__ __subclasscheck__ __slots__ __match_args__ __annotations__ __copy__ __deepcopy__ "
        "__replace__ __all__ __version__ __author__ __test__ __orig_bases__ __parameters__ __classcell__ "
        "__firstlineno__ __static_attributes__ __type_params__ __annotate__ __annotate_func__ "
        "__conditional_annotations__ __classdictcell__ __annotations_cache__ __objclass__ __order__ __subclasshook__ "
        "__dict__ __prepare__ __mro_entries__ __root__ __signature__ __wrapped__ __rich_repr__ __html__ "
        "__abstractmethods__ __final__ __required_keys__ __optional_keys__ __total__ __readonly_keys__ "
        "__mutable_keys__ __closed__ __extra_items__ __no_type_check__ __isabstractmethod__ __deprecated__ "
        "__override__ __cmp__ __coerce__ __div__ __getslice__ __hex__ __idiv__ __long__ __metaclass__ __nonzero__ "
        "__oct__ __rdiv__ __unicode__"
    )
)
"""Names that a class of the code's own may define. Not `__del__`, which would run in whatever thread drops the object
last; not `__reduce__` and the like, which have libraries call what they name; not `__class__`; not numpy's interfaces.
"""

NOT_IN_METACLASS = names("__hash__ __eq__ __getattribute__ mro")
"""Names that the gates rely on, where classes are looked up by identity."""

READABLE = (
    OPERATIONS
    | HEAVY
    | DESCRIBING
    | _HOOKS
    | ERROR_PARTS
    | TYPING
    | names(
        "__class__ __dict__ __annotations__ __match_args__ __slots__ __copy__ __deepcopy__ __members__ __wrapped__ "
        "__dataclass_fields__ __version__ __author__ __file__ __all__ __test__ __instancecheck__ __subclasscheck__ "
        "__prepare__ __isabstractmethod__ __abstractmethods__ __required_keys__ __optional_keys__ __total__ "
        "__replace__ __rich_repr__ __html__ __signature__ __defaults__ __kwdefaults__ __fspath__ __getstate__ "
        "__objclass__ __stdin__ __stdout__ __stderr__"
    )
)
"""Names with two underscores that are granted on some object; every other is refused before anything runs."""

WRITABLE = (
    DESCRIBING
    | ERROR_PARTS
    | names("__annotations__ __type_params__ __wrapped__ __signature__ __isabstractmethod__")
    | ((DEFINABLE & (OPERATIONS | HEAVY)) | names("__init__ __call__ __match_args__ __dict__"))
)
"""Names with two underscores that may be set, on what the code itself made."""

LIBRARY_READS = names("__mro__ __bases__ __subclasses__ __traceback__ __code__")
"""Attributes that source of the library reads: of classes, as far as its world knows them, and of exceptions."""

LIBRARY_WRITES = names(
    "__dataclass_fields__ __dataclass_params__ __setattr__ __delattr__ __replace__ __getstate__ __setstate__ "
    "__traceback__"
)
"""Attributes that source of the library sets on exceptions and on classes of the code's own, beside `WRITABLE`."""

REFUSED_BUILTINS = names("eval exec compile open breakpoint copyright credits license memoryview")

RESERVED = names(
    "__builtins__ __import__ __build_class__ __classdict__ __loader__ __spec__ __package__ __path__ __cached__ "
    "__globals__ __warningregistry__"
)
"""Names of a module's own that code neither reads nor binds."""


def is_dunder(name: str) -> bool:
    """True if a name is the language's own by its form."""
    return name.startswith("__") and name.endswith("__") and len(name) > 4


def never_read(name: str) -> str | None:
    """The rule by which an attribute of this name is refused on every object; None where it depends on the object."""
    if name in FRAMES:
        return "frame"
    if name in TYPES:
        return "type" if name != "mro" else None
    if is_dunder(name) and name not in READABLE:
        return "attribute"
    return None


def mangled(name: str, owner: str | None) -> str:
    """A name as the compiler spells it inside class `owner`."""
    if owner is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    owner = owner.lstrip("_")
    return f"_{owner}{name}" if owner else name

PROTOCOL_MARKS = names("_is_protocol _is_runtime_protocol __protocol_attrs__ __non_callable_proto_members__")
"""Attributes by which `typing` knows a protocol that may be asked about an object: it sets them itself."""
