"""Where each value lives, which loops run it, which helpers hide a wait."""
