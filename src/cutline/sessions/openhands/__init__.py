"""OpenHands' conversations and trajectories, of both generations: found and read; shown, not cut.

Law: an original is only read. `find` knows where they are, `source` gives the events of a file or a folder one by one,
`view` says which of them the model still sees, `events` and `sdk` make a history of them (of the first generation's and
of the SDK's), `session` puts it together.
"""

from ..shown import reread, resume, write
from .find import owns, places, sessions
from .session import open_session

LABEL = "OpenHands"

__all__ = ["LABEL", "open_session", "owns", "places", "reread", "resume", "sessions", "write"]
