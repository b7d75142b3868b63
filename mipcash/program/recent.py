"""A cache of the most recently used values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """Cache of the values of the ``size`` most recently used keys."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, made by ``make`` if it is not cached."""
        with suppress(KeyError):  # another thread may remove it meanwhile
            self._values.move_to_end(key)
            return self._values[key]
        value = self._values[key] = make()
        if len(self._values) > self.size:
            with suppress(KeyError):
                self._values.popitem(last=False)
        return value

    def shared(self, key: Hashable, value: T) -> T:
        """Return the cached value of a key, or cache this one."""
        return self.get(key, lambda: value)
