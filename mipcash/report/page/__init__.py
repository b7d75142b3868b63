"""The report as one HTML page: its charts are SVG, its style and its script are in it, and it asks no network for anything."""
