"""Recordings in, costs out; one file per format."""
