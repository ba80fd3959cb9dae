"""Who may import whom, and what may be loaded before it is needed."""

import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "static" / "js"

# The server answers before torch is there, and the command line prints its help without waiting for it.
WITHOUT_TORCH = (
    "model",
    "model.errors",
    "model.config",
    "model.interventions",
    "model.zoo",
    "model.labs.catalogue",
    "app.settings",
    "app.cli",
    "app.main",
)

_IMPORT = re.compile(
    r"""^\s*(?:import|export)\b[^'"]*?\bfrom\s*["']([^"']+)["']|^\s*import\s*["']([^"']+)["']""", re.MULTILINE
)


def test_layers_of_the_python_code(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert status == 0, capsys.readouterr().out


def test_a_trace_needs_only_the_score_arithmetic():
    graph = grimp.build_graph("model", cache_dir=None)
    allowed = {f"model.{name}" for name in ("scores", "masks", "rules", "config", "errors")}
    assert graph.find_modules_directly_imported_by("model.trace") <= allowed


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_importing_it_loads_no_torch(module):
    program = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr or f"{module} loads torch"


def _room(script: Path) -> str:
    """The folder under static/js that a module is in; `shared` for those directly in it."""
    parts = script.relative_to(SCRIPTS).parts
    return parts[0] if len(parts) > 1 else "shared"


def _imports(script: Path) -> list[Path]:
    names = [one or other for one, other in _IMPORT.findall(script.read_text(encoding="utf-8"))]
    targets = [(script.parent / name).resolve() for name in names]
    assert [target for target in targets if not target.is_file()] == [], f"{script} imports what is not there"
    return targets


# Pages use labs, controls and figures; labs use controls, both use figures; all use what is shared.
ROOMS = {"pages": {"pages", "learn", "ui", "figures", "shared"}, "ui": {"ui", "figures", "shared"}}
ROOMS |= {"learn": {"learn", "ui", "figures", "shared"}}
ROOMS |= {"figures": {"figures", "shared"}, "shared": {"shared"}}


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_of_the_javascript(room):
    scripts = [script for script in SCRIPTS.rglob("*.js") if _room(script) == room]
    assert scripts, f"no script is in {room}: has it moved?"
    wrong = [
        f"{script.relative_to(SCRIPTS)} imports {target.relative_to(SCRIPTS)}"
        for script in scripts
        for target in _imports(script)
        if _room(target) not in ROOMS[room]
    ]
    assert wrong == []


def test_every_script_has_a_room():
    assert {_room(script) for script in SCRIPTS.rglob("*.js")} == ROOMS.keys()


@pytest.mark.parametrize("script", sorted((SCRIPTS / "figures").rglob("*.js")), ids=lambda path: path.name)
def test_figures_are_pure(script):
    """A figure turns data and options into a drawing: it knows neither the network nor the page's state."""
    assert {"api.js", "state.js"}.isdisjoint(target.name for target in _imports(script))
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", script.read_text(encoding="utf-8"), flags=re.DOTALL)
    reached = re.findall(r"\b(?:fetch|localStorage|sessionStorage|location|history)\s*[.(]", code)
    assert reached == []
