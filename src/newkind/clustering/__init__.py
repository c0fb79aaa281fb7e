"""k-means and semi-supervised k-means on features, in chunks, on a CPU or a GPU."""
