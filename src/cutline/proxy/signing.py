"""Requests signed anew for Amazon Bedrock: the client's signature holds neither for another host nor for a cut body.

Law: the user's own credentials, found where botocore finds them, signed with by botocore, kept nowhere else. A request
that came without a signature of AWS's goes without one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..errors import InputError

_SCOPE = re.compile(r"AWS4-HMAC-SHA256\s+Credential=(?P<key>[^/,\s]+)/\d{8}/(?P<region>[\w-]+)/(?P<service>[\w-]+)/")
_SIGNED = frozenset(("authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"))


class Signer:
    """Signs with the user's AWS credentials (Signature Version 4).

    Args:
        profile: the profile of the user's AWS configuration; None for what the environment says.

    Raises:
        InputError: botocore is not installed, or there are no credentials.
    """

    def __init__(self, profile: str | None = None) -> None:
        try:
            import botocore.session
        except ImportError:
            raise InputError(
                "Bedrock's requests are signed anew, which needs botocore; install it: pip install 'cutline[bedrock]'"
            ) from None
        try:
            self._credentials: Any = botocore.session.Session(profile=profile).get_credentials()
        except Exception as error:  # a profile that is not there, a file that can't be read
            raise InputError(f"AWS credentials: {_line(error)}") from None
        if self._credentials is None:
            raise InputError("no AWS credentials were found; set AWS_PROFILE or AWS_ACCESS_KEY_ID, or log in")

    def sign(self, method: str, url: str, headers: list[tuple[str, str]], body: bytes) -> list[tuple[str, str]]:
        """The headers with a signature for this address and body; may ask for credentials that were renewed.

        Args:
            method, url: as they are sent.
            headers: as they came; region and service are those that the client signed for.
            body: as it is sent.

        Raises:
            InputError: the credentials can't be renewed.
        """
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        scope = _scope(headers)
        if scope is None:
            return headers
        kept = [(name, value) for name, value in headers if name.lower() not in _SIGNED]
        asked = AWSRequest(method, url, dict(kept), body)
        try:
            credentials = self._credentials.get_frozen_credentials()
            SigV4Auth(credentials, scope["service"], scope["region"]).add_auth(asked)
        except Exception as error:  # a login that has ended, a helper that fails
            raise InputError(f"AWS credentials: {_line(error)}; log in again") from None
        added = [(name, value) for name, value in asked.headers.items() if name.lower() in _SIGNED]
        return [*kept, *added]

    def signed(self, headers: Iterable[tuple[str, str]]) -> bool:
        """Whether a request came signed with these very credentials; may ask for some that were renewed."""
        scope = _scope(headers)
        try:
            return scope is not None and scope["key"] == self._credentials.get_frozen_credentials().access_key
        except Exception:  # as in sign; there it is told
            return False


def is_signed(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether a request came with a signature of AWS's."""
    return _scope(headers) is not None


def _scope(headers: Iterable[tuple[str, str]]) -> re.Match[str] | None:
    """By which key, and for which region and service, a request came signed."""
    given = (value for name, value in headers if name.lower() == "authorization")
    return next((found for value in given if (found := _SCOPE.match(value))), None)


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
