"""A record as the first release laid it out, made by SQL: migrations are held against it for ever. Never changed."""

import hashlib
import json
import sqlite3
import sys
from pathlib import Path

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TABLES = """
CREATE TABLE blob (id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL,
    base INTEGER, data BLOB NOT NULL);
CREATE TABLE node (id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, parent INTEGER,
    message INTEGER NOT NULL, gap BLOB, depth INTEGER NOT NULL);
CREATE TABLE session (id INTEGER PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, client TEXT NOT NULL,
    project TEXT NOT NULL, UNIQUE (session, agent, client, project));
CREATE TABLE request (id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, at REAL NOT NULL,
    kind TEXT NOT NULL, model TEXT NOT NULL, frame INTEGER NOT NULL, split INTEGER, node INTEGER, marks TEXT,
    size INTEGER NOT NULL, sent INTEGER NOT NULL, seam TEXT NOT NULL, status INTEGER NOT NULL, answer INTEGER,
    usage TEXT NOT NULL);
CREATE INDEX request_of_session ON request (session);
CREATE TABLE call (id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE, address TEXT NOT NULL,
    tool TEXT NOT NULL);
CREATE INDEX call_at_address ON call (address);
CREATE TABLE place (call INTEGER NOT NULL, session INTEGER NOT NULL, message INTEGER NOT NULL,
    block INTEGER NOT NULL, node INTEGER NOT NULL, answer INTEGER NOT NULL, answer_block INTEGER NOT NULL,
    request INTEGER NOT NULL, PRIMARY KEY (call, session, message, block)) WITHOUT ROWID;
CREATE VIRTUAL TABLE search USING fts5 (text, content='', detail=none, columnsize=0, tokenize='trigram');
CREATE TABLE document (id INTEGER PRIMARY KEY, session TEXT NOT NULL, project TEXT NOT NULL, at REAL NOT NULL,
    address TEXT NOT NULL, json TEXT NOT NULL, stamp TEXT NOT NULL, flags TEXT NOT NULL);
CREATE INDEX document_of_session ON document (session);
CREATE TABLE stop (session TEXT NOT NULL, seam TEXT NOT NULL, rule TEXT NOT NULL, why TEXT NOT NULL,
    at REAL NOT NULL, PRIMARY KEY (session, seam)) WITHOUT ROWID;
PRAGMA application_id=1131770988;
PRAGMA user_version=1;
"""
CALL, ADDRESS = "toolu_1", "dba6a0d7c4f46f5b"
MESSAGES = [
    b'{"role":"user","content":"The importer drops the last row."}',
    b'{"role":"assistant","content":[{"type":"text","text":"Reading it, because of the bound."},'
    b'{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"cat importer.py"}}]}',
    b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"range(len(rows) - 1)"}]}',
    b'{"role":"user","content":"Summarise the conversation."}',
]
FRAME = b'{"model":"claude-opus-4-7","messages":[],"max_tokens":9}'
SPLIT = FRAME.index(b"]")
ANSWER = b'[{"type":"text","text":"The bound is one too low."}]'


def build(path: Path, address: str) -> list[bytes]:
    """Two turns and a compaction of one session, a document and a stop; returns the bodies, in order."""
    path.parent.mkdir(mode=0o700)
    path.touch(0o600)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("PRAGMA journal_mode=WAL;" + TABLES)

    def blob(data: bytes) -> int:
        row = (hashlib.sha256(data).digest(), len(data), zstd.compress(data, 3))
        connection.execute("INSERT OR IGNORE INTO blob (hash, size, data) VALUES (?, ?, ?)", row)
        return connection.execute("SELECT id FROM blob WHERE hash = ?", row[:1]).fetchone()[0]

    connection.execute("INSERT INTO session VALUES (1, 's1', '', 'claude', '/home/user/proj')")
    nodes, parent = [], bytes(32)
    for depth, message in enumerate(MESSAGES):
        parent = hashlib.sha256(parent + hashlib.sha256(message).digest()).digest()
        row = (parent, nodes[-1] if nodes else None, blob(message), depth)
        sql = "INSERT INTO node (hash, parent, message, depth) VALUES (?, ?, ?, ?)"
        nodes.append(connection.execute(sql, row).lastrowid)
    bodies = []
    for at, (upto, kind, answer) in enumerate(((1, "turn", None), (3, "turn", ANSWER), (4, "compaction", ANSWER))):
        bodies.append(FRAME[:SPLIT] + b",".join(MESSAGES[:upto]) + FRAME[SPLIT:])
        connection.execute(
            "INSERT INTO request (session, at, kind, model, frame, split, node, size, sent, seam, status, answer, usage)"
            " VALUES (1, ?, ?, 'claude-opus-4-7', ?, ?, ?, ?, ?, '', 200, ?, '{}')",
            (1_790_000_000.0 + at, kind, blob(FRAME), SPLIT, nodes[upto - 1], len(bodies[-1]), len(bodies[-1]),
             blob(answer) if answer else None),
        )  # fmt: skip
    key = hashlib.sha256(address.encode() + b'"range(len(rows) - 1)"').digest()[:16]
    connection.execute("INSERT INTO call VALUES (1, ?, ?, 'Bash')", (key, address))
    connection.execute(
        "INSERT INTO search (rowid, text) VALUES (1, ?)", ("command\ncat importer.py\nrange(len(rows) - 1)",)
    )
    connection.execute("INSERT INTO place VALUES (1, 1, 1, 1, ?, ?, 0, 2)", (nodes[1], nodes[2]))
    stamp = json.dumps({"head": "abc1234"})
    row = ("s1", "/home/user/proj", 1_790_000_003.0, "a" * 16, '{"done":"half"}', stamp, "[]")
    connection.execute(
        "INSERT INTO document (session, project, at, address, json, stamp, flags) VALUES (?, ?, ?, ?, ?, ?, ?)", row
    )
    connection.execute("INSERT INTO stop VALUES ('s1', ?, '5', 'refused twice', 1.0)", ("a" * 16,))
    connection.close()
    return bodies
