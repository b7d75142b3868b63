"""``python -m mipcash`` is the command ``mipcash``."""

from __future__ import annotations

from mipcash.integrations.cli import main

if __name__ == "__main__":
    main()
