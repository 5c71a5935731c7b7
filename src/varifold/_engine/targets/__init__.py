"""Targets of a learner: labels (`ClassTarget`), numbers (`RealTarget`) or nothing (`NoTarget`)."""
