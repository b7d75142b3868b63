"""The command line. ``main`` has the commands, ``options`` their arguments, ``plans`` the description of a run.

modelfile and limits read what a run is made of; running executes it; ending writes its end, as text or json_lines. archive
and consent read journals, result_tables and printing write to the terminal, report has the page. No other package imports this one.
"""
