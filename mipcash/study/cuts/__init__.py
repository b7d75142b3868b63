"""The search for learned cuts: settings that fail together, in the trials of a study or of a journal."""
