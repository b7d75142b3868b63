"""HiGHS without output."""

from __future__ import annotations

import highspy


class SilentHighs(highspy.Highs):  # type: ignore[misc]
    """An instance of HiGHS that prints nothing.

    HiGHS prints a banner at the first call that may log. highspy makes such a call, ``enableCallbacks``, while it constructs
    the object, so that ``output_flag`` must be set before it.
    """

    def enableCallbacks(self) -> None:
        """Switch the output off first."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()
