"""A report as a person or a program reads it; one file per format."""
