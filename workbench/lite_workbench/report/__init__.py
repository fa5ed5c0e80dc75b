"""One self-contained HTML file that says everything that is known about a model.

`sections.py` turns a Session's results into widgets, `page.py` turns widgets into a page; the
widgets' `report.js` stands in for the kernel there.
"""

from .page import Section, page
from .sections import sections
from .write import write_report

__all__ = ["Section", "page", "sections", "write_report"]
