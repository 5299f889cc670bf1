"""What the cases for the published Python library are made of."""

import contextlib
import functools
import http.server
import pathlib
import socketserver
import tempfile
import threading

import dagger
from dagger import dag

IMAGE = "deb://bookworm"
CASES = []


def case(function):
    """Marks a function as a case."""
    CASES.append(function)
    return function


def newest(function):
    """Marks a case about what only newer versions of the library have."""
    return case(function) if hasattr(dagger.Directory, "search") else function


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def folder():
    """A folder of this machine, gone afterwards."""
    with tempfile.TemporaryDirectory() as path:
        yield pathlib.Path(path)


@contextlib.contextmanager
def answering(text, server, address):
    """A server of this machine that says one text to everybody."""

    class Answer(socketserver.StreamRequestHandler):
        def handle(self):
            self.wfile.write(text)

    with server(address, Answer) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield listening
        listening.shutdown()


@contextlib.contextmanager
def web_server(folder):
    """The address of a web server of this machine with the files of a folder."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def debian():
    return dag.container().from_(IMAGE)


def shell(script):
    return debian().with_exec(["sh", "-c", script])


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


async def raises(kind, awaitable):
    """The exception of this kind that an awaitable must end with."""
    try:
        value = await awaitable
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} but {value!r}")
