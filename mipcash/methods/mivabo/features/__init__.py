"""Features phi_d of the binaries and phi_c of the numerical parameters."""
