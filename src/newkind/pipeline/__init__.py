"""The stages of a discovery, from a collection to a finished run."""
