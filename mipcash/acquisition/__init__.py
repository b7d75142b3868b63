"""What is minimised to propose a point, and the searches that minimise it over legal points."""
