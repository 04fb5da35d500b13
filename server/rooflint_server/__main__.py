"""`python -m rooflint_server`."""

from rooflint_server.server import serve

serve()
