"""Several objectives under rules: hypervolume of the front, ours compared with BoTorch's and random search."""
