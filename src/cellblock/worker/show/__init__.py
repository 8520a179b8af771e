"""From values to what a notebook shows of them."""
