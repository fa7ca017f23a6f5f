"""The record: the durable store of whole histories, content-addressed and compressed, in one SQLite file.

Law: what was recorded stays until its owner, or the retention that its owner left in force, deletes whole sessions;
nothing of a request's headers is ever handed to it. `values` says what goes in and comes out, `parts` and
`rebuilding` take a body apart and put it together, `packing` stores bytes once, `calls` and `words` find calls and
what was said, `store` ties them together, `writer` does it off the request's path; `masking`, `deleting`, `checking`
and `transfer` do what their names say; `schema`, `migrations`, `settings` and `place` look after the file.
"""

from .calls import is_tool
from .masking import FORMS, mask
from .place import default_path, greeting
from .schema import RecordFault
from .settings import RETENTION_DAYS
from .store import Record
from .transfer import is_export, read
from .values import Deleted, Document, Exchange, History, Recorded, RequestRow, Said, SessionRow, Stats, Stop
from .words import Text, texts
from .writer import Writer

__all__ = [
    "FORMS",
    "RETENTION_DAYS",
    "Deleted",
    "Document",
    "Exchange",
    "History",
    "Record",
    "RecordFault",
    "Recorded",
    "RequestRow",
    "Said",
    "SessionRow",
    "Stats",
    "Stop",
    "Text",
    "Writer",
    "default_path",
    "greeting",
    "is_export",
    "is_tool",
    "mask",
    "read",
    "texts",
]
