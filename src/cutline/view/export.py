"""The page as one file to share: script, style and one session inside, secrets of known forms masked.

Law: the file asks nobody for anything: its policy allows the one script and the one style that stand in it, by their
hashes, and no request at all. What is recorded is masked before anything is made of it, and stands in the file as
JSON in which no ``<`` is written as such, so that nothing in it can end the element that holds it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from ..record import mask
from ..sessions.model import Session
from ..sessions.neutral import NeutralHistory, NeutralSession
from . import timeline as timelines
from .server import file
from .timeline import Timeline
from .whatif import cut_at

PLACES = 40
"""So many places of a cut are worked out beforehand; the server works out any."""


def page(session: Session) -> bytes:
    """One HTML file that shows a session."""
    # Masked whole, before anything is cut short: half a secret has no form that is known.
    data = _masked(_data(timelines.read(masked(session))))
    script = b"\n".join(file(name) for name in ("draw.js", "rows.js", "reckon.js", "page.js"))
    style = file("page.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    held = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")
    html = file("page.html").decode()
    begin, _, rest = html.partition("<!-- from here on: what an export carries inside -->")
    _, _, body = rest.partition("<!-- to here -->")
    inside = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style.decode()}</style>\n'
    body = body.replace(
        "</body>",
        f'<script type="application/json" id="data">{held}</script>\n<script>{script.decode()}</script>\n</body>',
    )
    return (begin + inside + body).encode("utf-8", "replace")


def masked(session: Session) -> Session:
    """A session with its secrets masked, for showing only. The address of a call whose arguments held one changes."""
    history = session.history
    body = mask(history.body)
    return NeutralSession(
        client=session.client,
        path=session.path,
        id=session.id,
        cwd=session.cwd,
        title=session.title,
        history=NeutralHistory(
            body,
            [[*places] for places in history.places],
            list(history.origins),
            history.model,
            list(history.requests),
            history.compacted,
        ),
        version=session.version,
        git_branch=session.git_branch,
        last=session.last,
        damage=tuple(session.damage),
        sealed=session.sealed,
    )


def _data(timeline: Timeline) -> dict[str, Any]:
    total = len(timeline.firsts)
    human = list(timeline.session.history.human)
    places = {*[seam for seam, _ in timeline.seams], *human, total}
    if len(places) > PLACES:
        every = sorted(places)
        places = {every[round(number * (len(every) - 1) / (PLACES - 1))] for number in range(PLACES)}
    return {
        "session": timeline.as_json(),
        "notes": timeline.notes(),
        "texts": [timeline.text(index) for index in range(len(timeline.entries))],
        "cuts": {"": cut_at(timeline, None), **{str(place): cut_at(timeline, place) for place in sorted(places)}},
    }


def _masked(value: Any) -> Any:
    """The same value with secrets of known forms masked in every text of it, keys too."""
    if isinstance(value, str):
        hidden = mask(value.encode("utf-8", "surrogatepass"))
        return hidden.decode("utf-8", "surrogatepass")
    if isinstance(value, dict):
        return {_masked(key): _masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    return value


def _hash(data: bytes) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(data).digest()).decode()
