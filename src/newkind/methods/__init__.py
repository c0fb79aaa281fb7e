"""One file a method. A method builds its heads, turns a batch into named loss terms, and features into categories."""
