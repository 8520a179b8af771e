"""Values on their way across a wall."""
