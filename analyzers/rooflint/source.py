"""A source file as a list of blocks, each parsed alone."""
