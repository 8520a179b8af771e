"""The assembler of the system call filter: rules over numbers and arguments, as a classic BPF program.

A fragment is a run of instructions whose every path ends in a RETURN, so fragments nest: a branch is its
comparison, the fragment for one outcome, and the fragment for the other.
"""

import errno
import struct
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Match:
    """Test that 32 bits of an argument, under `mask`, are one of `values`; with `negated`, none of them."""

    argument: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF
    negated: bool = False
    upper: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """A demand on the arguments: some match of `any_of` holds, else the call answers `otherwise`."""

    any_of: tuple[Match, ...]
    otherwise: int = errno.EPERM


Rule = tuple[Clause, ...]
"""The call is allowed when every clause holds; the first that does not gives the answer."""

IGNORED = -1
"""An answer: the call reports success and is not carried out."""
SUPERVISED = -2
"""An answer: the call waits for what the holder of the filter's listener says; ENOSYS where nobody holds it."""

_Instruction = tuple[int, int, int, int]
_Fragment = list[_Instruction]

_LOAD, _AND, _JUMP, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x06
_INSTRUCTION = struct.Struct("=HBBI")  # operation, jump if true, jump if false, operand
_FARTHEST_JUMP = 255
_MOST_INSTRUCTIONS = 4096

_KILL_PROCESS, _ERRNO, _NOTIFY, _ALLOW = 0x80000000, 0x00050000, 0x7FC00000, 0x7FFF0000
_NUMBER_OFFSET, _ARCH_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16  # in struct seccomp_data
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's numbers of the machines that there is a filter for."""

_X32_BIT = 0x40000000


def assemble(audit_arch: int, by_number: Mapping[int, int | Rule]) -> bytes:
    """The filter that gives each call its answer: 0 for allowed, an errno, `IGNORED`, `SUPERVISED`, or a rule.

    Other calls answer ENOSYS.
    """
    unknown = _answer(errno.ENOSYS)
    tree = _search(_ranges(by_number))
    known_arch = [(_LOAD, 0, 0, _NUMBER_OFFSET), *_at_least(_X32_BIT, unknown, tree)]
    return _encode([(_LOAD, 0, 0, _ARCH_OFFSET), *_equal((audit_arch,), known_arch, [(_RETURN, 0, 0, _KILL_PROCESS)])])


def length(program: bytes) -> int:
    """Number of instructions of a program."""
    return len(program) // _INSTRUCTION.size


def _ranges(by_number: Mapping[int, int | Rule]) -> list[tuple[int, _Fragment]]:
    """Neighbouring numbers with the same answer are a range: its first number, and what to do there."""
    ranges: list[tuple[int, _Fragment]] = []
    previous: int | Rule | None = None
    for number in range(max(by_number) + 2):
        answer = by_number.get(number, errno.ENOSYS)
        if answer != previous:
            ranges.append((number, _answer(answer)))
            previous = answer
    return ranges


def _search(ranges: list[tuple[int, _Fragment]]) -> _Fragment:
    """Find the range of the loaded number by halving: about 8 comparisons."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    return _at_least(ranges[middle][0], _search(ranges[middle:]), _search(ranges[:middle]))


def _answer(answer: int | Rule) -> _Fragment:
    if not isinstance(answer, int):
        return _rule(answer)
    if answer == IGNORED:
        return [(_RETURN, 0, 0, _ERRNO)]
    if answer == SUPERVISED:
        return [(_RETURN, 0, 0, _NOTIFY)]
    return [(_RETURN, 0, 0, _ERRNO | answer if answer else _ALLOW)]


def _rule(rule: Rule) -> _Fragment:
    satisfied = _answer(0)
    for clause in reversed(rule):
        outcome = _answer(clause.otherwise)
        for match in reversed(clause.any_of):
            outcome = _match(match, satisfied, outcome)
        satisfied = outcome
    return satisfied


def _match(match: Match, holds: _Fragment, fails: _Fragment) -> _Fragment:
    load: _Fragment = [(_LOAD, 0, 0, _ARGUMENTS_OFFSET + 8 * match.argument + 4 * match.upper)]
    if match.mask != 0xFFFFFFFF:
        load.append((_AND, 0, 0, match.mask))
    found, missed = (fails, holds) if match.negated else (holds, fails)
    return load + _equal(match.values, found, missed)


def _equal(values: tuple[int, ...], found: _Fragment, missed: _Fragment) -> _Fragment:
    """One comparison a value, each jumping over `missed` to `found`; too far, and `missed` comes last."""
    if not values:
        return missed
    if len(values) + len(missed) <= _FARTHEST_JUMP:
        return [*_comparisons(values, len(missed)), *missed, *found]
    return [*_comparisons(values, 1), (_JUMP, 0, 0, len(found)), *found, *missed]


def _comparisons(values: tuple[int, ...], between: int) -> _Fragment:
    """Compare with each value; the one that is equal jumps over the rest and `between` more instructions."""
    last = len(values) - 1
    return [(_JUMP_IF_EQUAL, last - place + between, 0, value) for place, value in enumerate(values)]


def _at_least(value: int, reached: _Fragment, below: _Fragment) -> _Fragment:
    if len(below) <= _FARTHEST_JUMP:
        return [(_JUMP_IF_AT_LEAST, len(below), 0, value), *below, *reached]
    return [(_JUMP_IF_AT_LEAST, 0, 1, value), (_JUMP, 0, 0, len(below)), *below, *reached]


def _encode(program: _Fragment) -> bytes:
    """The program as the kernel reads it, after checks that the kernel would answer with a bare EINVAL."""
    if len(program) > _MOST_INSTRUCTIONS:
        raise ValueError(f"the filter has {len(program)} instructions, the kernel takes {_MOST_INSTRUCTIONS}")
    for place, instruction in enumerate(program):
        for jump in _jumps(instruction):
            if place + 1 + jump >= len(program):
                raise ValueError(f"instruction {place} of the filter leads past its end")
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in program)


def _jumps(instruction: _Instruction) -> tuple[int, ...]:
    """Numbers of instructions it may skip. `struct` itself refuses a conditional jump past 255."""
    operation, if_true, if_false, operand = instruction
    if operation == _RETURN:
        return ()
    return (operand,) if operation == _JUMP else (if_true, if_false)
