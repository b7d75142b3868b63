"""Detection of the Python construct that asked for a truth value, so that the error message can name its replacement.

``if x``, ``not x``, ``1 <= a <= 3``, ``a in [1, 2]``, ``max(a, b)`` and an array of comparisons all call ``__bool__``. The
caller's current instruction distinguishes them. ``BRANCH`` is the default.
"""

from __future__ import annotations

import dis
import sys
from types import FrameType

CHAIN, IN, NOT, CALL, ARRAY, BRANCH = "chain", "in", "not", "call", "array", "branch"
_TO_BOOL = 16
"""Bit of a comparison's argument, since Python 3.13: the comparison converts its result to a bool."""


def construct_at(frame: FrameType | None) -> str:
    """Return the construct at which a frame stands; ``BRANCH`` if no other is recognised.

    Args:
        frame: of the code that asked for the truth value.
    """
    if frame is None:
        return BRANCH
    instructions = list(dis.get_instructions(frame.f_code))
    at = next((k for k, i in enumerate(instructions) if i.offset == frame.f_lasti), 0)
    here = instructions[at]
    if here.opname == "CONTAINS_OP":
        return IN
    if "UNARY_NOT" in (here.opname, instructions[min(at + 1, len(instructions) - 1)].opname):
        return NOT
    if here.opname.startswith("CALL"):
        return CALL
    if here.opname == "COMPARE_OP" and not (sys.version_info >= (3, 13) and (here.arg or 0) & _TO_BOOL):
        return ARRAY
    before = [i.opname for i in instructions[max(0, at - 5) : at + 1]]
    for k, name in enumerate(before):
        if name == "SWAP" and before[k + 1 : k + 3] == ["COPY", "COMPARE_OP"]:
            return CHAIN
    return BRANCH
