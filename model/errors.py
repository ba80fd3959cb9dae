"""The errors a user can meet: each is one sentence on what happened, to which input, and what to do."""

from http import HTTPStatus


class AtlasError(Exception):
    """An error with a sentence for the user.

    `slug` names the kind for programs, `status` is the HTTP status the web door answers with, and `extra`
    holds machine-readable facts (a limit, an index, a state) that travel in the problem document.
    """

    slug = "error"
    status = int(HTTPStatus.INTERNAL_SERVER_ERROR)

    def __init__(self, detail: str, **extra: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.extra = extra


class InputError(AtlasError):
    """The text or the ids cannot be run."""

    slug = "bad-input"
    status = int(HTTPStatus.UNPROCESSABLE_ENTITY)


class TooLong(InputError):
    """The input has more tokens than the model has positions."""

    slug = "too-long"


class OverBudget(AtlasError):
    """The run would need more memory than this server allows one trace."""

    slug = "over-budget"
    status = int(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


class PlanError(AtlasError):
    """An intervention does not fit the model or the input."""

    slug = "bad-plan"
    status = int(HTTPStatus.UNPROCESSABLE_ENTITY)


class ConfigError(AtlasError):
    """A checkpoint's configuration holds something that is not implemented."""

    slug = "unsupported-config"
    status = int(HTTPStatus.UNPROCESSABLE_ENTITY)


class CheckpointError(AtlasError):
    """A checkpoint file is damaged, incomplete or not what its configuration says."""

    slug = "bad-checkpoint"
    status = int(HTTPStatus.UNPROCESSABLE_ENTITY)


class UnknownModel(AtlasError):
    """No model has this id."""

    slug = "unknown-model"
    status = int(HTTPStatus.NOT_FOUND)


class UnknownLab(AtlasError):
    """No experiment has this name."""

    slug = "not-found"
    status = int(HTTPStatus.NOT_FOUND)


class UnknownRecording(AtlasError):
    """No sound of this name comes along."""

    slug = "unknown-recording"
    status = int(HTTPStatus.NOT_FOUND)


class NotReady(AtlasError):
    """The model is still being fetched or loaded, or nobody has asked for it yet."""

    slug = "model-not-ready"
    status = int(HTTPStatus.SERVICE_UNAVAILABLE)


class FetchError(AtlasError):
    """A download failed."""

    slug = "fetch-failed"
    status = int(HTTPStatus.BAD_GATEWAY)


class TraceGone(AtlasError):
    """The trace was evicted or never existed on this server."""

    slug = "trace-gone"
    status = int(HTTPStatus.NOT_FOUND)


class UnknownSite(AtlasError):
    """The trace has no such site, head, row or column."""

    slug = "unknown-site"
    status = int(HTTPStatus.NOT_FOUND)


class Refused(AtlasError):
    """The server's owner does not allow this request."""

    slug = "refused"
    status = int(HTTPStatus.FORBIDDEN)


class Busy(AtlasError):
    """Every compute slot is taken."""

    slug = "busy"
    status = int(HTTPStatus.SERVICE_UNAVAILABLE)
