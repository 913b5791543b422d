"""The errors that Faceoff raises on purpose: each says what was expected, what was found and what to do."""


class FaceoffError(Exception):
    """Base of every error that a person can act on; programs print it without a traceback and exit 1."""


class ConfigError(FaceoffError):
    """A configuration file is wrong. The message names file, line and key, and the corrected line."""


class DataError(FaceoffError):
    """A data set, or one of its files, is missing, cut or not what its manifest says."""


class RecordError(FaceoffError):
    """A record cannot be read, or its content does not match its own sha256."""


class AcceleratorError(FaceoffError):
    """A layout asks for accelerators that this machine does not have."""


class DivergenceError(FaceoffError):
    """Training left the numbers: the loss is NaN or infinite."""
