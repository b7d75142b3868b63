"""The report as one self-contained HTML page: its charts are SVG, style and script are inline, and it needs no network."""
