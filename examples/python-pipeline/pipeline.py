"""A pipeline in Python, with the standard library alone.

It tests a small program under two settings at the same time, then writes a report in a third container that
sees both results. Run it with `ci-tool run -- python3 pipeline.py`.
"""

import base64
import json
import os
import urllib.request
from concurrent.futures import ThreadPoolExecutor

ADDRESS = f"http://127.0.0.1:{os.environ['CITOOL_SESSION_PORT']}/query"
TOKEN = base64.b64encode(f"{os.environ['CITOOL_SESSION_TOKEN']}:".encode()).decode()


def query(document, **variables):
    """Sends a document and returns its data; an error of the engine is an exception."""
    body = json.dumps({"query": document, "variables": variables}).encode()
    headers = {"content-type": "application/json", "authorization": f"Basic {TOKEN}"}
    with urllib.request.urlopen(urllib.request.Request(ADDRESS, body, headers)) as answer:
        reply = json.load(answer)
    if reply.get("errors"):
        raise RuntimeError("\n".join(error["message"] for error in reply["errors"]))
    return reply["data"]


def source():
    """The id of the folder with the program under test."""
    document = '{ host { directory(path: "app", include: ["*.py"]) { id } } }'
    return query(document)["host"]["directory"]["id"]


def test(app, setting):
    """Runs the tests under a setting and returns what they print."""
    document = """query($app: ID!, $setting: String!) {
      container { from(address: "deb://bookworm+python3") {
        withDirectory(path: "/app", source: $app) { withWorkdir(path: "/app") {
          withEnvVariable(name: "ROUNDING", value: $setting) {
            withExec(args: ["python3", "-B", "test_price.py"]) { stdout } } } } } } }"""
    data = query(document, app=app, setting=setting)
    container = data["container"]["from"]["withDirectory"]["withWorkdir"]
    return container["withEnvVariable"]["withExec"]["stdout"]


def report(results):
    """Collects the results in a directory and returns the names in it and the text of the report."""
    document = """query($up: String!, $down: String!) {
      directory { withNewFile(path: "up.txt", contents: $up) {
        withNewFile(path: "down.txt", contents: $down) { id } } } }"""
    data = query(document, **results)
    results = data["directory"]["withNewFile"]["withNewFile"]["id"]
    document = """query($results: ID!) {
      container { from(address: "deb://bookworm") {
        withMountedDirectory(path: "/results", source: $results) {
          withExec(args: ["sh", "-c", "cat /results/*.txt > /results/report.txt"]) {
            directory(path: "/results") { entries file(path: "report.txt") { contents } } } } } } }"""
    data = query(document, results=results)
    directory = data["container"]["from"]["withMountedDirectory"]["withExec"]["directory"]
    return directory["entries"], directory["file"]["contents"]


def main():
    app = source()
    with ThreadPoolExecutor() as pool:
        up, down = pool.map(lambda setting: test(app, setting), ["up", "down"])
    names, text = report({"up": up, "down": down})
    print(f"wrote {', '.join(names)}:")
    print(text, end="")


if __name__ == "__main__":
    main()
