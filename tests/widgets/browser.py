"""A page of widgets: what it has sent to Python, and what stands in place of a plot."""

from __future__ import annotations

STATES = [
    {"kind": "error", "what": "**No images.**", "fix": "mogrify x"},
    {"kind": "empty", "title": "Nothing yet", "button": "Profile"},
]
SAVED = "() => Object.assign({}, ...window.saved[%d])"


def settle(page, ms=200):
    """Waits until the page's own timers of up to `ms` have run: they run in their order, however
    busy the machine is."""
    page.evaluate("(ms) => new Promise((done) => setTimeout(done, ms))", ms)


def saved(page, i=0):
    """What widget i sent to Python so far, later changes over earlier ones."""
    settle(page)  # soft changes are sent at most every 120 ms
    return page.evaluate(SAVED % i)
