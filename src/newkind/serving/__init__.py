"""A model over HTTP."""
