"""Several objectives under rules: hypervolume of the front, ours beside BoTorch's and random search."""
