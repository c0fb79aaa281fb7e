"""Images to tokens: the frozen trunk, the tuned last block folded to the class token, and the token cache."""
