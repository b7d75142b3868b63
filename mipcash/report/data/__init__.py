"""The numbers behind the pictures: what is drawn, on a page or on axes, is made here and nowhere else."""
