"""What is shipped: the wheel, the container image, the pins."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import app
import model
from app import paths

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(built) as archive:
        yield archive


def _files(folder: str) -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_holds_the_code_and_the_page(wheel):
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    page = {f"app/{name}" for folder in ("static", "templates") for name in _files(folder)}
    assert len(page) > 10
    assert names == _files("app") | _files("model") | page


def test_an_unpacked_wheel_runs_away_from_the_checkout(wheel, tmp_path):
    wheel.extractall(tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from app import cli, paths; "
        "print(paths.STATIC, paths.TEMPLATES); cli.main()"
    )
    command = [sys.executable, "-P", "-c", program, str(tmp_path), "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    places, version = done.stdout.splitlines()
    assert [Path(place) for place in places.split()] == [
        tmp_path / "app" / "static",
        tmp_path / "app" / "templates",
    ]
    assert version == f"attention-atlas {app.__version__}"


def test_wheel_names_its_command_and_licence(wheel):
    (commands,) = (
        wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/entry_points.txt")
    )
    assert "attention-atlas = app.cli:main" in commands
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())


def test_a_checkout_uses_its_own_page():
    assert (paths.STATIC, paths.TEMPLATES) == (ROOT / "static", ROOT / "templates")


def test_one_version_everywhere():
    npm = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    assert {app.__version__, model.__version__, npm["version"], lock["version"]} == {app.__version__}
    assert f"## {app.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_requirement_is_pinned_within_its_range():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for requirement in (Requirement(text) for group in groups for text in group):
        pin = pins[canonicalize_name(requirement.name)]
        assert pin in requirement.specifier, f"{requirement} does not admit the pinned {pin}"


def test_lock_file_names_no_host():
    assert "://" not in (ROOT / "package-lock.json").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def image() -> list[tuple[str, str]]:
    """The Dockerfile's instructions: keyword and the rest, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    lines = re.sub(r"\\\n\s*", "", code).splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line.strip()]


def _stages(image: list[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    stages: dict[str, list[tuple[str, str]]] = {}
    for keyword, rest in image:
        if keyword == "FROM":
            name = rest.split(" AS ")[-1]
            stages[name] = []
        elif stages:
            stages[name].append((keyword, rest))
    return stages


def test_both_variants_run_as_an_ordinary_user(image):
    stages = _stages(image)
    base = dict(stages["base"])
    assert base["USER"] not in ("root", "0")
    assert not any(keyword == "USER" for name in ("cpu", "cuda") for keyword, _ in stages[name])
    parents = [rest.split() for keyword, rest in image if keyword == "FROM"]
    assert [parent for parent, *_ in parents[-3:]] == ["base", "base", "${VARIANT}"]


def test_image_is_asked_whether_it_is_well(image):
    command = json.loads(dict(_stages(image)["base"])["HEALTHCHECK"].partition("CMD ")[2])
    assert command[0] == "python"
    compile(command[2], "health check", "exec")
    assert "/healthz" in command[2]


def test_image_answers_to_named_hosts_only(image):
    environment = dict(word.split("=", 1) for word in dict(_stages(image)["base"])["ENV"].split())
    assert environment["ATLAS_HOST"] == "0.0.0.0"
    assert environment["ATLAS_ALLOWED_HOSTS"] == "localhost,127.0.0.1"
    assert ("VOLUME", environment["ATLAS_CACHE_DIR"]) in _stages(image)["base"]


def test_image_copies_only_what_is_let_in(image):
    copies = [rest.split()[:-1] for keyword, rest in image if keyword == "COPY" and "--from=" not in rest]
    sources = {source for words in copies for source in words}
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = {line[1:] for line in ignore if line.startswith("!")}
    assert "*" in ignore
    assert sources == let_in
    assert all((ROOT / source).exists() for source in sources)
    refused = [line for line in ignore if line.startswith("**/")]
    assert any(fnmatch("app/__pycache__", pattern) for pattern in refused)
