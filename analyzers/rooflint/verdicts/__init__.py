"""What limits a line, and what to do; one file per verdict."""
