#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Chromium for tests, by the WebDriver protocol of chromedriver.

    browser.py open DRIVER URL       opens the URL in a browser; prints the address of its session
    browser.py script SESSION TEXT   runs the text in the page; prints {"value": what it returns}
    browser.py click SESSION CSS     clicks on the first element that the selector finds
    browser.py errors SESSION        prints what the browser has complained of so far
    browser.py close SESSION

DRIVER is chromedriver's address. `chromium --dump-dom` cannot be used for a page that always has a
request under way: it takes the document when the page is loaded, which is before the first answer,
and its --virtual-time-budget stands still as long as a request is under way.
"""

import sys
from _json import encode_basestring_ascii as quote
from _socket import socket

import light

OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
OPTIONS += ["--disable-background-networking", "--disable-sync", "--window-size=1100,1000"]
WANTED = ",".join(quote(option) for option in OPTIONS)
WANTED = f'"goog:chromeOptions": {{"args": [{WANTED}]}}, "goog:loggingPrefs": {{"browser": "ALL"}}'
CLICKS = 5  # tries
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name of a reference in WebDriver


def receive(there):
    """Return the status and the content of an answer."""
    text, head, content, length = b"", b"", b"", None
    while length is None or len(content) < length:
        part = there.recv(65536)
        if not part:
            break
        text += part
        head, _, content = text.partition(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line[15:])
    return int(head.split(b" ")[1]), content.decode()


def ask(method, address, body=""):
    """Return the answer. A refusal ends the program, with the driver's message."""
    where, _, path = address.removeprefix("http://").partition("/")
    host, port = where.split(":")
    there = socket()
    there.settimeout(30)
    there.connect((host, int(port)))
    there.sendall(
        f"{method} /{path} HTTP/1.1\r\nHost: {where}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    status, said = receive(there)
    if status >= 400:
        sys.exit(light.parse_json(said)["value"]["message"])
    return said


def value(method, address, body=""):
    return light.parse_json(ask(method, address, body))["value"]


def open_page(driver, url):
    body = f'{{"capabilities": {{"alwaysMatch": {{{WANTED}}}}}}}'
    session = f"{driver}/session/{value('POST', f'{driver}/session', body)['sessionId']}"
    ask("POST", f"{session}/url", f'{{"url": {quote(url)}}}')
    return session


def click(session, selector):
    """Again if the page has put another element in its place meanwhile."""
    place = f'{{"using": "css selector", "value": {quote(selector)}}}'
    for left in reversed(range(CLICKS)):
        element = value("POST", f"{session}/element", place)[ELEMENT]
        try:
            ask("POST", f"{session}/element/{element}/click", "{}")
            return
        except SystemExit as error:
            if "stale element" not in str(error) or not left:
                raise


def run(verb, session, text=""):
    if verb == "open":
        print(open_page(session, text))
    elif verb == "script":
        body = f'{{"script": {quote(text)}, "args": []}}'
        print(ask("POST", f"{session}/execute/sync", body))
    elif verb == "click":
        click(session, text)
    elif verb == "errors":
        for entry in value("POST", f"{session}/se/log", '{"type": "browser"}'):
            print(entry["level"], entry["message"])
    elif verb == "close":
        ask("DELETE", session)


if __name__ == "__main__":
    run(*sys.argv[1:])
