"""Where the page's files lie: beside `app` in a checkout, inside it in an installed wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _assets(name: str) -> Path:
    packed = _PACKAGE / name
    return packed if packed.is_dir() else _PACKAGE.parent / name


STATIC = _assets("static")
TEMPLATES = _assets("templates")
