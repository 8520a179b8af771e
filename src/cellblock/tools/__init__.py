"""Functions of the host that agents call: how they are marked, described to a model, and registered."""

from cellblock.tools.tool import Visibility, about, tool

__all__ = ["Visibility", "about", "tool"]
