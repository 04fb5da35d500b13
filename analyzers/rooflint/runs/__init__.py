"""Runs things: the script under the recorder, ncu, and the questions of doctor."""
