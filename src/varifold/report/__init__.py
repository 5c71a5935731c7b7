"""Pictures and pages of results; nothing here computes a learner.

It imports `bench` (and is imported by it), evaluation and what is below; matplotlib when a picture is drawn.
"""
