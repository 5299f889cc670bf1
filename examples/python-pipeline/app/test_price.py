"""Tests of price.py, for a machine without a test runner."""

import os

from price import with_tax

expected = 12 if os.environ.get("ROUNDING") == "up" else 11
assert with_tax(10, 19) == expected, with_tax(10, 19)
assert with_tax(100, 0) == 100
print(f"rounding {os.environ.get('ROUNDING')}: 2 tests passed")
