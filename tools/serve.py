"""Serves the built book on this machine: `python -m tools.serve [--port 8000] [--check]`.

Only 127.0.0.1 is listened to.  Browsers are asked to check for newer pages every time, so that a
rebuilt book is seen at once.  Text travels compressed, as it does from a host of pages, so that
what is measured here holds there.
"""

from __future__ import annotations

import argparse
import errno
import functools
import gzip
import http
import http.server
import io
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
HOST = "127.0.0.1"
# What gets smaller when it is compressed; pictures and fonts are compressed already.
TEXT = {".html", ".css", ".js", ".mjs", ".json", ".svg", ".txt", ".xml", ".wasm"}


def compressed(body: bytes) -> bytes:
    """As a host of pages sends it: gzip at its usual level, the same bytes every time."""
    return gzip.compress(body, 6, mtime=0)


@functools.lru_cache(maxsize=512)
def _compressed_file(file: Path, version: str) -> bytes:
    """Kept, because every page asks for the same stylesheet again."""
    return compressed(file.read_bytes())


class Pages(http.server.SimpleHTTPRequestHandler):
    """Static files, without a log line for each."""

    # The system's own table may call JavaScript text/plain, and then no module would run.
    extensions_map = {  # noqa: RUF012 - the base class names it so
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",
        ".json": "application/json",
    }

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        """The file, compressed where that helps and the browser takes it."""
        file = Path(self.translate_path(self.path))
        if file.is_dir() and self.path.partition("?")[0].endswith("/"):
            file = file / "index.html"
        takes = "gzip" in self.headers.get("Accept-Encoding", "")
        if not takes or file.suffix not in TEXT or not file.is_file():
            return super().send_head()
        status = file.stat()
        version = f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
        known = self.headers.get("If-None-Match") == version
        body = b"" if known else _compressed_file(file, version)
        self.send_response(http.HTTPStatus.NOT_MODIFIED if known else http.HTTPStatus.OK)
        self.send_header("ETag", version)
        self.send_header("Vary", "Accept-Encoding")
        if not known:
            self.send_header("Content-Type", self.guess_type(os.fspath(file)))
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)

    def send_error(self, code: int, *details: Any) -> None:
        """For an address that is not there the book has a page, as it has on a host of pages."""
        lost = Path(self.directory, "404.html")
        if code != http.HTTPStatus.NOT_FOUND or not lost.is_file():
            super().send_error(code, *details)
            return
        body = lost.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader who leaves a page early is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class PortError(RuntimeError):
    """The port cannot be had: says why and what to do."""


def port_number(text: str) -> int:
    """The number in ``PORT=…``; raises :class:`PortError` where there is none."""
    try:
        return int(text)
    except ValueError:
        raise PortError(
            f"{text!r} is no port number: take one from 1024 to 65535, as in `make serve PORT=8001`"
        ) from None


def make_server(port: int, site: Path = SITE) -> Server:
    """A server for the folder, bound but not yet running; port 0 takes any free one.

    Raises :class:`PortError`.
    """
    handler = functools.partial(Pages, directory=str(site))
    try:
        return Server((HOST, port), handler)
    except OverflowError:
        raise PortError(
            f"{port} is no port number: take one from 1024 to 65535, as in `make serve PORT=8001`"
        ) from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortError(
                f"port {port} is in use by another program: end that one, or choose another port, "
                f"as in `make serve PORT={port + 1 if port < 65535 else 8000}`"
            ) from None
        if error.errno in (errno.EACCES, errno.EPERM):
            raise PortError(
                f"port {port} is not open to you (ports under 1024 are root's): choose another, "
                "as in `make serve PORT=8000`"
            ) from None
        raise


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.serve", description="Serve the book.")
    parser.add_argument("--port", default="8000")
    parser.add_argument(
        "--check", action="store_true", help="only see whether the port is free, then stop"
    )
    options = parser.parse_args(arguments)
    try:
        server = make_server(port_number(options.port))
    except PortError as error:
        print(f"serve: {error}", file=sys.stderr)
        return 2
    with server:
        if options.check:
            return 0
        if not (SITE / "index.html").is_file():
            print("serve: there is no book in _build/html yet: run `make book`", file=sys.stderr)
            return 2
        print(f"\nThe book is open at  http://{HOST}:{server.server_port}/\nCtrl+C closes it.")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("\nClosed.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
