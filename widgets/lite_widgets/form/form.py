"""Form: a few labeled lines of text, and one button that takes them."""

from __future__ import annotations

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, PlainList


class Form(LiteWidget):
    """A card with text fields.

    fields  [{"name", "label", "hint", "optional"}]; the button waits for those that are not
            optional. values: {name: text}, where the fields start; hint is an example in grey. A
            field with "options", [[value, text]], is a choice of these.
    errors  {name: what is wrong with this field}; a field of them is marked, its text beneath.
    button  its word; note: a sentence beneath; closable: whether it has a Close button.
    blocked why the button cannot be pressed now, in place of the note; empty where it can.

    Actions: {"id": "submit", "values"} (also by Enter), {"id": "close"}.
    """

    title = t.Unicode("")
    fields = PlainList(need=("name", "label"))
    values = t.Dict()
    errors = t.Dict()
    button = t.Unicode(tr("Add"))
    note = t.Unicode("")
    blocked = t.Unicode("")
    closable = t.Bool(True)

    def static_html(self) -> str:
        """Return nothing: there is nobody to fill it in."""
        return ""
