"""Listings of declarations (``mipcash.study.records.fingerprint``): their digest, and the differences between two of them.

A listing is a dict from entry name to text. Pyomo, which takes a second to import, is not needed to compare two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from mipcash.text import told_apart

PRIOR = "the prior of "
"""Entries of priors, which change proposals, and not the space."""
NUMBERS, ORDER, DETAIL = "the arithmetic of ", "the order of the ", "the detail of "
LATER = (NUMBERS, ORDER, DETAIL)
"""Kinds of entries that are reported as a difference only if no other difference explains them."""


def fingerprint(entries: Mapping[str, str]) -> str:
    """Return the SHA-256 of a listing, priors aside. The order of its entries does not matter, as that of declarations is one."""
    space = sorted((name, text) for name, text in entries.items() if not name.startswith(PRIOR))
    return hashlib.sha256(json.dumps(space).encode()).hexdigest()


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return sentences that name the differences between two listings, in the order of the declarations."""
    found = [f"{name} is gone" for name in then if name not in now and not name.startswith(LATER)]
    for name, text in now.items():
        if name.startswith(LATER):
            continue
        if name not in then:
            found.append(f"{name} is new")
        elif then[name] != text:
            found.append(_changed(name, then[name], text))
    return found + _later_differences(then, now, found)


def _later_differences(then: Mapping[str, str], now: Mapping[str, str], found: list[str]) -> list[str]:
    """Return the differences in numbers, orders and details that are not a consequence of those already found."""
    more = []
    for name in dict.fromkeys([*then, *now]):
        if not name.startswith(LATER) or then.get(name) == now.get(name):
            continue
        subject = name[len(NUMBERS) :] if name.startswith(NUMBERS) else None
        reported = any(f.startswith(f"{subject} ") for f in found) if subject else name.startswith(ORDER) and found
        if not reported:
            more.append(_changed(name, then.get(name, "not there"), now.get(name, "not there")))
    return more


def _changed(name: str, then: str, now: str) -> str:
    before, after = told_apart([then, now], 120)
    return f"{name} was {before} and is {after} now"
