"""Lets the tests of all folders below import what lies here: `parity`, `small_models`."""
