"""The stages of a discovery, and what can be done with a finished run."""
