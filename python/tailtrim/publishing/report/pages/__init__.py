"""Pages: one HTML file each, which needs nothing else."""
