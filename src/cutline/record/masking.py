"""Secrets of known forms, taken out on the way into the record where its owner asked for that.

Law: nothing but the secret changes, JSON stays the JSON that it was, and masking what is masked changes nothing.
Pure; off by default, since a record that masks is no longer the history byte for byte.
"""

from __future__ import annotations

import re

# Each form: its name, a text that it always holds, and what it looks like; of a group, only that is masked. A form
# begins and ends with characters that are never part of an escape, and takes a backslash as a whole escape only.
_FORMS = tuple(
    (name, hint, re.compile(form))
    for name, hint, form in (
        ("anthropic key", b"sk-ant-", rb"sk-ant-[A-Za-z0-9_-]{16,}"),
        ("openrouter key", b"sk-or-v1-", rb"sk-or-v1-[0-9a-f]{32,}"),
        ("openai key", b"sk-", rb"sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{20,})"),
        ("github token", b"gh", rb"gh[opsur]_[A-Za-z0-9]{36,}"),
        ("github token", b"github_pat_", rb"github_pat_[A-Za-z0-9_]{22,}"),
        ("gitlab token", b"glpat-", rb"glpat-[A-Za-z0-9_-]{20,}"),
        ("slack token", b"xox", rb"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("stripe key", b"k_live_", rb"[rs]k_live_[A-Za-z0-9]{16,}"),
        ("stripe key", b"k_test_", rb"[rs]k_test_[A-Za-z0-9]{16,}"),
        ("google key", b"AIza", rb"AIza[A-Za-z0-9_-]{35}"),
        ("google token", b"ya29.", rb"ya29\.[A-Za-z0-9_-]{20,}"),
        ("aws key id", b"AKIA", rb"AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("aws key id", b"ASIA", rb"ASIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
        *(
            ("aws secret key", hint, hint + rb"[^A-Za-z0-9]{1,8}((?:[A-Za-z0-9+]|\\?/){40})(?![A-Za-z0-9+/=])")
            for hint in (b"aws_secret_access_key", b"AWS_SECRET_ACCESS_KEY", b"SecretAccessKey")
        ),
        ("npm token", b"npm_", rb"npm_[A-Za-z0-9]{36}"),
        ("pypi token", b"pypi-", rb"pypi-[A-Za-z0-9_-]{50,}"),
        ("hugging face token", b"hf_", rb"hf_[A-Za-z0-9]{30,}"),
        ("sendgrid key", b"SG.", rb"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}"),
        ("json web token", b"eyJ", rb"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
        ("bearer token", b"earer ", rb"[Bb]earer ([A-Za-z0-9._~+-]{20,})"),
        ("basic login", b"asic ", rb"[Bb]asic ([A-Za-z0-9+]{16,})"),
        ("password in an address", b"://", rb"://[A-Za-z0-9._%-]{1,64}:([A-Za-z0-9._~!$&*+=%-]{3,128})@"),
        (
            "private key",
            b"PRIVATE KEY",
            rb"-----BEGIN (?:[A-Z]{2,10} )*PRIVATE KEY(?: BLOCK)?-----"
            rb"((?:[A-Za-z0-9+/=:,. \r\n-]|\\+[nrt/]){20,}?)-----END ",
        ),
    )
)
FORMS = tuple(dict.fromkeys(name for name, _, _ in _FORMS))
"""The names of the forms that are known."""
_WORD = re.compile(rb"[A-Za-z0-9_]")
_ESCAPE = re.compile(rb"\\(?:[bfnrt\"/\\]|u[0-9a-fA-F]{4})")


def mask(data: bytes) -> bytes:
    """The same bytes with each secret of a known form as ``[masked: NAME OF THE FORM]``.

    Args:
        data: JSON, or any other text; in JSON only characters inside strings are ever touched.
    """
    before = None
    while data is not before:  # of two that touch, the second begins a word only when the first is gone
        before = data
        for name, hint, form in _FORMS:
            if hint in data:
                data = _one(data, form, b"[masked: %s]" % name.encode())
    return data


def _one(data: bytes, form: re.Pattern[bytes], sign: bytes) -> bytes:
    out: list[bytes] = []
    done = at = 0
    while found := form.search(data, at):
        start, end = found.span(form.groups)  # the group where there is one, else the whole
        if not _begins(data, found.start()) or _odd(data, start):
            at = found.start() + 1
            continue
        out += [data[done:start], sign]
        done = at = end
    return b"".join([*out, data[done:]]) if out else data


def _begins(data: bytes, at: int) -> bool:
    """Whether a word begins here: not inside another word, and not inside an escape (``\\npm_…`` is a line break)."""
    if at and _odd(data, at):
        return False
    if not at or not _WORD.match(data, at) or not _WORD.match(data, at - 1):
        return True
    # What stands before may be the last character of an escape, as of a line break; also in JSON inside of JSON.
    return any(start >= 0 and _ESCAPE.fullmatch(data, start, at) for start in (at - 2, at - 6))


def _odd(data: bytes, at: int) -> bool:
    """Whether an odd number of backslashes stands directly before: what stands here belongs to an escape."""
    start = at
    while start and data[start - 1] == 0x5C:
        start -= 1
    return (at - start) % 2 == 1
