"""Links from files: ours, and what YOURLS, Shlink and Kutt give away.

`open_rows` turns a file into rows and knows nothing of a database; `bring` makes links of them, a batch at a time.
"""

from refract.links.importing.bring import Bringing, OnConflict, Outcome, Result
from refract.links.importing.formats import Kind, LinkRows, open_rows
from refract.links.importing.rows import Candidate, LinkRow

__all__ = ["Bringing", "Candidate", "Kind", "LinkRow", "LinkRows", "OnConflict", "Outcome", "Result", "open_rows"]
