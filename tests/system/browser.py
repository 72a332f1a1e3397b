#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Chromium for tests, by the WebDriver protocol of chromedriver.

    browser.py open DRIVER URL       opens the URL in a browser; prints the address of its session
    browser.py script SESSION TEXT   runs the text in the page; prints as JSON what it returns
    browser.py click SESSION CSS     clicks on the first element that the selector finds
    browser.py errors SESSION        prints what the browser has complained of so far
    browser.py close SESSION

DRIVER is chromedriver's address. `chromium --dump-dom` cannot be used for a page that always has a
request under way: it takes the document when the page is loaded, which is before the first answer,
and its --virtual-time-budget stands still as long as a request is under way.
"""

import json
import sys
import urllib.request

OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
OPTIONS += ["--disable-background-networking", "--disable-sync", "--window-size=1100,1000"]
CLICKS = 5  # tries
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name of a reference in WebDriver


def ask(method, address, body=None):
    """The value of the answer. A refusal ends the program, with the driver's message."""
    request = urllib.request.Request(address, method=method)
    request.add_header("Content-Type", "application/json")
    if body is not None:
        request.data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        sys.exit(json.load(error)["value"]["message"])


def open_page(driver, url):
    wanted = {"goog:chromeOptions": {"args": OPTIONS}, "goog:loggingPrefs": {"browser": "ALL"}}
    body = {"capabilities": {"alwaysMatch": wanted}}
    session = f"{driver}/session/{ask('POST', f'{driver}/session', body)['sessionId']}"
    ask("POST", f"{session}/url", {"url": url})
    return session


def click(session, selector):
    """Again if the page has put another element in its place meanwhile."""
    place = {"using": "css selector", "value": selector}
    for left in reversed(range(CLICKS)):
        element = ask("POST", f"{session}/element", place)[ELEMENT]
        try:
            ask("POST", f"{session}/element/{element}/click", {})
            return
        except SystemExit as error:
            if "stale element" not in str(error) or not left:
                raise


def run(verb, session, text=""):
    if verb == "open":
        print(open_page(session, text))
    elif verb == "script":
        print(json.dumps(ask("POST", f"{session}/execute/sync", {"script": text, "args": []})))
    elif verb == "click":
        click(session, text)
    elif verb == "errors":
        for entry in ask("POST", f"{session}/se/log", {"type": "browser"}):
            print(entry["level"], entry["message"])
    elif verb == "close":
        ask("DELETE", session)


if __name__ == "__main__":
    run(*sys.argv[1:])
