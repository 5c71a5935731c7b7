"""Every exception the library raises on purpose; each is also the built-in a caller would expect."""

__all__ = [
    "BusyLearnerError",
    "DataError",
    "FeatureNameError",
    "FeatureValueError",
    "LabelError",
    "MissingExtraError",
    "ModelFileError",
    "OutOfMemoryError",
    "ParameterError",
    "UnknownNameError",
    "VarifoldError",
    "VarifoldWarning",
]


class VarifoldError(Exception):
    """Root of the tree: ``except varifold.errors.VarifoldError`` catches all of ours and nothing else."""


class FeatureNameError(VarifoldError, TypeError):
    """A feature name is neither str nor int, or it collides with an indicator's name."""


class FeatureValueError(VarifoldError, ValueError):
    """A feature value is infinite or of a kind that has no number."""


class LabelError(VarifoldError, ValueError):
    """A label is missing or cannot be hashed."""


class ParameterError(VarifoldError, ValueError):
    """A parameter is outside its declared range."""


class ModelFileError(VarifoldError, ValueError):
    """A model file is damaged, foreign, or of a newer format."""


class DataError(VarifoldError, ValueError):
    """Input data cannot be read or has the wrong shape."""


class UnknownNameError(VarifoldError, KeyError):
    """A model, data set, scenario or column of that name does not exist."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class MissingExtraError(VarifoldError, ImportError):
    """An optional dependency is not installed; the message holds the install line."""


class VarifoldWarning(UserWarning):
    """The library fell back to a cheaper form or ignored something, and says so."""


class BusyLearnerError(VarifoldError, RuntimeError):
    """A learner was used while another call on it was still running."""


class OutOfMemoryError(VarifoldError, MemoryError):
    """No memory was left; the learner is as after the last instance it learned whole.

    `learned` says how many instances of the call were learned before.
    """

    def __init__(self, message: str, learned: int = 0) -> None:
        super().__init__(message)
        self.learned = learned
