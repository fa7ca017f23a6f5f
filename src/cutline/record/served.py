"""The other side of `apart`: a record that does what its program asks for, call by call, until that ends.

    python -P -m cutline.record.served PATH TIMEOUT

Law: standard input and output belong to the program that started it, and carry pickles between the two of them only.
"""

from __future__ import annotations

import pickle
import sys

from .schema import RecordFault
from .store import Record
from .writer import told


def main(path: str, timeout: str) -> None:
    """Serve; the record is opened with the first call, and again after a call that could not open it."""
    record: Record | None = None
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        fault, passing = "", False
        try:
            if record is None:
                record = Record(path or None, timeout=float(timeout))
            getattr(record, name)(*arguments)
        except Exception as error:
            fault, passing = told(error), isinstance(error, RecordFault) and error.passing
        try:
            pickle.dump((fault, passing, record.notes if record else ()), sys.stdout.buffer)
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # the program is gone
            break
    if record is not None:
        record.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
