"""The kernel's walls, one mechanism a module; each says what it applied or why it could not."""
