"""The public space: what is declared, and the questions that a solver answers about it."""

from __future__ import annotations

from mipcash.space.declaration import Declaration


class Space(Declaration):
    """A search space with rules; see :class:`mipcash.space.declaration.Declaration` for how to declare one."""
