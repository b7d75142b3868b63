"""The published methods, one package each with all that only this method uses. No module imports them: they are found by name.

mivabo    MiVaBO (Daxberger et al. 2019)
admm      ADMM for CASH (Liu et al. 2020; Ram et al. 2020), and its baseline JOPT
admmbo    ADMMBO (Ariafar et al. 2019)
cmes      constrained max-value entropy search (Perrone et al. 2019)

The README of each package maps the lines of the paper's algorithm to functions.
"""
