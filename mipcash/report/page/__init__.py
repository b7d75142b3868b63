"""The report as one self-contained HTML page: its charts are SVG, style and script are inline, and it needs no network.

Read in this order:

writing        the file
document       the page
charts, model  its charts
svg, parts     marks, and other elements
"""
