"""What the defaults of every learner are measured on: scaling, calibration, and memory bounded by `max_features`."""
