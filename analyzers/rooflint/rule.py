"""What a rule is."""
