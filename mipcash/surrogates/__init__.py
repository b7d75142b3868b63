"""Models of the loss over points, with posteriors whose means and samples a MIP can minimise."""
