"""Logs of Inspect, as `.eval` archives and as JSON: found and read; shown, not cut. A log holds a session a sample.

Law: an original is only read, and nothing of an archive is ever unpacked into a file. `find` knows where logs are,
`log` gives one sample of a log, `archive` what is in a `.eval`, `history` makes a history of a sample.
"""

from ..shown import reread, resume, write
from .find import owns, places, sessions
from .session import open_session

LABEL = "Inspect"

__all__ = ["LABEL", "open_session", "owns", "places", "reread", "resume", "sessions", "write"]
