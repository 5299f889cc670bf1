"""Prices in cents, rounded the way a setting says."""

import math
import os


def with_tax(cents, percent):
    """The price with tax added."""
    exact = cents * (100 + percent) / 100
    return math.ceil(exact) if os.environ.get("ROUNDING") == "up" else math.floor(exact)
