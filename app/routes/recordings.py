"""The sounds that come along for speech models."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import FileResponse

from model.recordings import recording, recordings

router = APIRouter(prefix="/api/recordings", tags=["recordings"])

FLAC: dict[int | str, dict[str, object]] = {
    200: {"content": {"audio/flac": {"schema": {"type": "string", "format": "binary"}}}}
}

Name = Annotated[str, Path(max_length=100, description="its name in the list")]


@router.get("", summary="The sounds that come along: what is said, and where each is from")
def list_recordings() -> dict[str, object]:
    """Each may be named in a trace of a speech model; the first is the one to begin with."""
    return {"recordings": [one.as_json() for one in recordings().values()]}


@router.get("/{name}", summary="One of them, as a FLAC file", response_class=FileResponse, responses=FLAC)
def read_recording(name: Name) -> FileResponse:
    """The file as it is, to be heard or drawn."""
    return FileResponse(
        recording(name).file, media_type="audio/flac", headers={"Cache-Control": "max-age=3600"}
    )
