"""A Hugging Face Hub on the loopback interface, as much of it as its client needs to fetch one repository."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.tiny_zoo import COMMIT, REPO, sha256

Files = dict[str, bytes]


@contextmanager
def fake_hub(files: Files) -> Iterator[str]:
    """Serve `files` as REPO at COMMIT and yield the endpoint."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files = files
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(path: str, files: Files) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers for one path of the Hub's API."""
    if path in {f"/api/models/{REPO}/revision/main", f"/api/models/{REPO}/revision/{COMMIT}"}:
        siblings = [{"rfilename": name, "size": len(content)} for name, content in files.items()]
        info = {"id": REPO, "sha": COMMIT, "siblings": siblings, "cardData": {"license": "mit"}}
        return 200, json.dumps(info).encode(), {}
    if path == f"/api/models/{REPO}/tree/{COMMIT}":
        return 200, json.dumps([_leaf(name, content) for name, content in files.items()]).encode(), {}
    name = path.removeprefix(f"/{REPO}/resolve/{COMMIT}/")
    if name in files:
        return 200, files[name], {"ETag": f'"{sha256(files[name])}"'}
    return 404, b"{}", {"X-Error-Code": "RepoNotFound"}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        self._send(with_body=False)

    def _send(self, *, with_body: bool) -> None:
        status, body, headers = answer(self.path.partition("?")[0], self.server.files)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body)), "X-Repo-Commit": COMMIT}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


def _leaf(name: str, content: bytes) -> dict[str, object]:
    return {"type": "file", "path": name, "size": len(content), "oid": sha256(content)[:40]}
