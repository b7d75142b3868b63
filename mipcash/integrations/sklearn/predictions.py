"""Out-of-fold predictions by configuration: in memory, or as files that processes and resumed runs share."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mipcash.errors import StorageError


def key_of(config: Mapping[str, Any], repeat: int) -> str:
    """Return one text for a configuration and a repeat, whatever the order of its entries and the types of its numbers."""
    entries = {name: _plain(value) for name, value in config.items()}
    return json.dumps([repeat, entries], sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)


class Predictions:
    """Predictions of held-out rows, each row once: shape (rows, classes) of probabilities, or (rows,) of values.

    Args:
        folder: where they are stored, one file each; None: in memory, where they are lost with this process and are not sent to
            other processes.
        of: identity of data, folds and scoring; files of another identity are not read.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, of: str) -> None:
        self.folder = None if folder is None else Path(folder).expanduser().absolute()
        self.of = of
        self._kept: dict[str, NDArray[np.float64]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}

    def get(self, config: Mapping[str, Any], repeat: int = 0) -> NDArray[np.float64] | None:
        """Return the predictions of a configuration, or None if there are none."""
        key = key_of(config, repeat)
        if self.folder is None:
            return self._kept.get(key)
        try:
            with np.load(self._file(key), allow_pickle=False) as arrays:
                same = str(arrays["key"]) == key and str(arrays["of"]) == self.of
                return np.asarray(arrays["predictions"], dtype=np.float64) if same else None
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # missing or incomplete: it is computed again
            return None

    def put(self, config: Mapping[str, Any], repeat: int, predictions: NDArray[np.float64]) -> None:
        """Store the predictions of a configuration.

        Raises:
            StorageError: the folder cannot be written to.
        """
        key = key_of(config, repeat)
        if self.folder is None:
            self._kept[key] = predictions
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".part")
            with os.fdopen(handle, "wb") as file:
                np.savez(file, predictions=predictions, key=np.array(key), of=np.array(self.of))
            os.replace(temporary, self._file(key))  # atomic for other processes
        except OSError as error:
            raise StorageError(
                f"predictions cannot be kept in {self.folder}: {error}; give predictions= a folder that can be written to"
            ) from error

    def _file(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(f'{self.of} {key}'.encode()).hexdigest()[:32]}.npz"
