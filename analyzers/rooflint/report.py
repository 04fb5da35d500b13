"""Joins findings, costs and verdicts by line."""
