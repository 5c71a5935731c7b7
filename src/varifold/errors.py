"""Exceptions of the library; each is also the built-in exception that a caller would expect."""

__all__ = [
    "BusyLearnerError",
    "DataError",
    "EntryPointError",
    "FeatureNameError",
    "FeatureValueError",
    "LabelError",
    "MissingExtraError",
    "ModelFileError",
    "OutOfMemoryError",
    "ParameterError",
    "TargetError",
    "UnknownNameError",
    "VarifoldError",
    "VarifoldWarning",
    "missing_extra",
]


class VarifoldError(Exception):
    """Base class of all errors of the library; ``except varifold.errors.VarifoldError`` catches these and no others."""


class FeatureNameError(VarifoldError, TypeError):
    """A feature name is neither str nor int, or equals the name ``feature=value`` of an indicator."""


class FeatureValueError(VarifoldError, ValueError):
    """A feature value is infinite or of a type that is neither a number nor a str."""


class LabelError(VarifoldError, ValueError):
    """A label is missing or cannot be hashed."""


class TargetError(VarifoldError, ValueError):
    """A regression target is missing, infinite, or not a number."""


class ParameterError(VarifoldError, ValueError):
    """A parameter is outside its declared range."""


class ModelFileError(VarifoldError, ValueError):
    """A model file (or its bytes) is damaged, foreign or of a newer format; or a state cannot be saved."""


class DataError(VarifoldError, ValueError):
    """Input data cannot be read or has the wrong shape."""


class UnknownNameError(VarifoldError, KeyError):
    """A model, data set, scenario or column of that name does not exist."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class EntryPointError(VarifoldError, ImportError):
    """A model that another package registers by an entry point cannot be imported, or is not a learner."""


class MissingExtraError(VarifoldError, ImportError):
    """An optional dependency is not installed; the message contains the install command."""


def missing_extra(what: str, extra: str) -> MissingExtraError:
    """Make the error for a missing extra, with the command that installs it from a checkout (not on an index yet)."""
    return MissingExtraError(f"{what}; in a checkout of varifold: pip install '.[{extra}]'")


class VarifoldWarning(UserWarning):
    """Warning that the library switched to a cheaper method or ignored part of the input."""


class BusyLearnerError(VarifoldError, RuntimeError):
    """A learner was used while another call on it was still running."""


class OutOfMemoryError(VarifoldError, MemoryError):
    """Memory ran out; the learner's state is that after the last instance it learned completely.

    `learned` is the number of instances that the call had learned before.
    """

    def __init__(self, message: str, learned: int = 0) -> None:
        super().__init__(message)
        self.learned = learned
