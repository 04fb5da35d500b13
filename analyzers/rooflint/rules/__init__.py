"""What is worth a squiggle; one file per rule."""
