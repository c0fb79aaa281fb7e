"""A run in the formats of other programs, and corrections from them: one file per format."""
