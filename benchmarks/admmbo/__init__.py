"""ADMMBO on the problems of its paper (ariafar2019, Section 5)."""
