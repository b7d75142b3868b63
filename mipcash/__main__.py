"""``python -m mipcash`` is the command ``mipcash``."""

from __future__ import annotations

from mipcash.cli.main import main

if __name__ == "__main__":
    main()
