"""Programs made smaller, tighter or better scaled before a solver sees them, each with its way back."""
