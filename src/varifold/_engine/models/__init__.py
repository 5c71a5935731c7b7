"""Base classes for a method's mathematics: `Model`, `RegressionModel`, `BinaryRule`, `PythonRule`."""
