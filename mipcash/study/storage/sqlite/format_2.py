"""Journals of format 2, in which what an objective said beside its numbers was lost: how they are read, and what their tables were.

The columns are those of format 3; an evaluation could not be a text yet.
"""

from __future__ import annotations

from mipcash.study.storage.sqlite import format_3

SCHEMA = 2

TABLES = {**format_3.TABLES, "evaluation": format_3.TABLES["evaluation"].replace("'text', ", "")}

STUDY = format_3.STUDY
read_trials, in_present_words = format_3.read_trials, format_3.in_present_words
