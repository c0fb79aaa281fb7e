"""Where images come from: sources and benchmarks give a Catalog, and the truth, if there is one, apart from it."""
