"""Scenarios: every way in which the papers make a fixed data set vary."""
