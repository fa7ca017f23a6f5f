"""The record: the durable store of whole histories, content-addressed and compressed, in one SQLite file.

Law: append-only; nothing of a request's headers is ever handed to it. `values` says what goes in and comes out,
`parts` takes a body apart, `packing` stores bytes once, `calls` finds calls, `store` ties them together, `writer`
does it off the request's path, `schema` and `place` look after the file.
"""

from .place import default_path
from .schema import RecordFault
from .store import Record
from .values import Document, Exchange, History, Recorded, RequestRow, SessionRow, Stop
from .writer import Writer

__all__ = [
    "Document",
    "Exchange",
    "History",
    "Record",
    "RecordFault",
    "Recorded",
    "RequestRow",
    "SessionRow",
    "Stop",
    "Writer",
    "default_path",
]
