"""scikit-learn: cross-validated objectives, and fitted estimators made of what a run found."""
