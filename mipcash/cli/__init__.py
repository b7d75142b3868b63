"""The command line. ``main`` has the commands, ``options`` their arguments, ``plans`` the description of a run.

running and work execute a run, archive and consent read journals, result_tables and printing write to the terminal. No other
package imports this one.
"""
