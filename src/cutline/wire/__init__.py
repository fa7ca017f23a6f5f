"""Wire formats, one file each: how its bodies are read, and the rules that are its own.

Law: what differs between providers lives here, cited to docs/wire.md; nothing above knows a format's keys.
"""
