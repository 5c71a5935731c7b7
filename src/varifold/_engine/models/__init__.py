"""What the engine needs of a method's mathematics: `Model`, `RegressionModel`, `BinaryRule`, `PythonRule`."""
