import gzip
import json
import re
from pathlib import Path

import pytest

from app import pages
from app.assets import PLOTLY_URL, PLOTLY_VERSION, Plotly, plotly_style_ids
from app.learn import TOUR
from app.paths import STATIC, TEMPLATES
from tests.serving import app_of, serving

HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
# What a script or a test finds the page's parts by (design, "The other doors").
PROMISED = {"text", "model", "mask", "run", "overview", "matrix", "lines", "tokens", "pair", "status"}
# These come with a model, so a script makes them.
MADE_LATER = {"model", "mask"}


def test_explore_opens(client):
    answer = client.get("/", headers=HTML)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-cache"
    assert set(re.findall(r'data-testid="([\w-]+)"', answer.text)) >= PROMISED - MADE_LATER
    assert '<html lang="en" data-state="idle">' in answer.text
    assert f'data-plotly="{PLOTLY_URL}"' in answer.text
    boot = re.search(r'<script type="application/json" id="boot">(.*?)</script>', answer.text)
    assert '"default_model": "minilm"' in boot[1]


def test_what_comes_later_is_made_by_a_script():
    scripts = "\n".join(file.read_text() for file in STATIC.glob("js/**/*.js"))
    for name in MADE_LATER:
        assert re.search(rf"testid['\"]?[:,=] ?[`'\"]{name}", scripts), name


LESSONS = [f"/learn/{lesson.slug}" for lesson in TOUR]


@pytest.mark.parametrize("path", LESSONS)
def test_a_lesson_brings_the_labs_and_widgets_that_it_names_and_no_others(client, path):
    text = client.get(path, headers=HTML).text
    boot = json.loads(re.search(r'<script type="application/json" id="boot">(.*?)</script>', text)[1])
    body = text[text.index("<main") :]
    assert set(boot["labs"]) == set(re.findall(r'data-lab="([\w-]+)"', body))
    for widget in re.findall(r'data-widget="([\w-]+)"', body):
        assert f'<link rel="modulepreload" href="/static/js/learn/{widget}.js">' in text


@pytest.mark.parametrize("path", ["/", "/docs", "/nonsense", "/learn", LESSONS[0]])
def test_a_page_asks_for_nothing_that_is_not_there_and_nothing_from_elsewhere(client, path):
    text = client.get(path, headers=HTML).text
    addresses = re.findall(r'(?:src|href|data-plotly)="([^"]+)"', text)
    assert addresses
    for address in addresses:
        if address.startswith("#"):
            assert f'id="{address[1:]}"' in text, address
            continue
        assert address.startswith("/"), address
        assert client.get(address).status_code == 200, address


@pytest.mark.parametrize("path", ["/", "/docs", "/nonsense"])
def test_a_page_needs_no_inline_script_or_style(client, path):
    text = client.get(path, headers=HTML).text
    for attributes, content in re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL):
        assert "application/json" in attributes or not content.strip()
    assert not re.search(r"<style|\son\w+=|\sstyle=|javascript:", text)


def test_docs_describe_every_route_and_every_default(client):
    text = client.get("/docs", headers=HTML).text
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        assert f"<code>{path}</code>" in text
        for operation in operations.values():
            assert operation["summary"]
    assert "<code>512</code>" in text
    assert "<code>weights</code>" in text
    assert "<code></code>" not in text


def test_every_parameter_is_described(client):
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                assert parameter.get("description"), (path, parameter["name"])


def test_no_page_for_a_program_and_no_document_for_a_person(client):
    page = client.get("/nonsense", headers=HTML)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is nothing at /nonsense" in page.text
    problem = client.get("/nonsense", headers={"accept": "*/*"})
    assert (problem.status_code, problem.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("name", [file.name for file in TEMPLATES.glob("*.html")])
def test_templates_escape_what_they_are_given(name):
    hostile = "<script>alert(1)</script>\"'&{{7*7}}"
    template = pages.TEMPLATE_ENGINE.get_template(name)
    known = {
        "asset_version": "1",
        "plotly_url": hostile,
        "boot": {"default_model": hostile},
        "title": hostile,
        "detail": hostile,
        "routes": [
            {
                "method": hostile,
                "path": hostile,
                "summary": hostile,
                "parameters": [{"name": hostile, "in": hostile, "default": hostile, "description": hostile}],
            }
        ],
    }
    text = template.render(known)
    assert "<script>alert" not in text
    assert "49" not in text
    assert template.environment.autoescape is True or template.environment.autoescape(name)


def test_a_hostile_default_model_is_only_data(models):
    name = "</script><script>alert(1)</script>"
    with serving(models) as client:
        object.__setattr__(app_of(client).state.services.settings, "preload", (name,))
        text = client.get("/", headers=HTML).text
    assert "<script>alert" not in text
    assert r"\u003c/script\u003e" in text


def test_our_files_are_asked_about_every_time(client):
    answer = client.get("/static/css/atlas.css")
    assert answer.headers["cache-control"] == "no-cache"
    again = client.get("/static/css/atlas.css", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("suffix", "kind"), [("js", "text/javascript"), ("css", "text/css"), ("svg", "image/svg+xml")]
)
def test_our_files_have_the_right_kind(client, suffix, kind):
    files = list(STATIC.rglob(f"*.{suffix}"))
    assert files
    for file in files:
        answer = client.get(f"/static/{file.relative_to(STATIC).as_posix()}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].split(";")[0] == kind


def test_every_module_a_page_names_is_there(client):
    assert len(pages.modules()) > 10
    for address in pages.modules():
        assert client.get(address).status_code == 200


def test_a_changed_file_changes_the_version(tmp_path, monkeypatch):
    (tmp_path / "a.js").write_text("1")
    monkeypatch.setattr(pages, "STATIC", tmp_path)
    versions = []
    for content in ("1", "1", "2"):
        (tmp_path / "a.js").write_text(content)
        pages.asset_version.cache_clear()
        versions.append(pages.asset_version())
    pages.asset_version.cache_clear()
    assert versions[0] == versions[1] != versions[2]


def raw(client, encoding):
    with client.stream("GET", PLOTLY_URL, headers={"accept-encoding": encoding}) as answer:
        return answer.headers, b"".join(answer.iter_raw())


def test_plotly_is_compressed_once_and_kept_for_good(client):
    app_of(client).state.plotly.pack()
    headers, packed = raw(client, "gzip, br")
    plain_headers, plain = raw(client, "identity")
    assert headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain_headers
    assert gzip.decompress(packed) == plain
    assert len(packed) < len(plain) / 3
    assert int(headers["content-length"]) == len(packed)
    for found in (headers, plain_headers):
        assert found["cache-control"] == "public, max-age=31536000, immutable"
        assert found["content-type"].startswith("text/javascript")
        assert found["vary"].lower() == "accept-encoding"
    assert PLOTLY_VERSION in PLOTLY_URL


def test_plotly_comes_from_the_installed_package(client):
    plotly = app_of(client).state.plotly
    assert raw(client, "identity")[1] == plotly._plain.read_bytes()
    assert b"plotly" in plotly._plain.read_bytes()[:1000]


def test_packing_leaves_one_file_and_is_done_once(tmp_path):
    plotly = Plotly(tmp_path)
    small = tmp_path / "small.js"
    small.write_bytes(b"content" * 1000)
    plotly._plain = small
    plotly.pack()
    (packed,) = Path(tmp_path / "assets").iterdir()
    assert gzip.decompress(packed.read_bytes()) == small.read_bytes()
    small.unlink()
    plotly.pack()
    assert list((tmp_path / "assets").iterdir()) == [packed]


def test_before_it_is_packed_it_comes_as_it_is(models, tmp_path, monkeypatch):
    monkeypatch.setattr(Plotly, "pack", lambda _: None)
    with serving(models, cache_dir=tmp_path) as client:
        answer = client.get(PLOTLY_URL, headers={"accept-encoding": "identity"})
    assert answer.status_code == 200
    assert "content-encoding" not in answer.headers


def test_large_answers_are_compressed_where_the_client_takes_it(client):
    headers = {"accept-encoding": "gzip"}
    assert client.get("/openapi.json", headers=headers).headers["content-encoding"] == "gzip"
    assert "content-encoding" not in client.get("/healthz", headers=headers).headers
    assert (
        "content-encoding" not in client.get("/openapi.json", headers={"accept-encoding": "identity"}).headers
    )


def test_a_page_names_the_styles_that_plotly_would_add(models):
    ids = plotly_style_ids()
    assert ids
    with serving(models) as client:
        page = client.get("/").text
    assert all(f'id="{style}"' in page for style in ids)
