"""The command line. ``main`` has the commands; ``options`` their arguments, ``plans`` the description of a run that they give.

running and work carry a run out, archive and consent read journals, result_tables and printing write to the terminal.
Nothing imports this room.
"""
