"""Session files of coding agents, one package or file a client: found, read, and rewritten as a cut copy.

Law: an original is never written to. Everything that is kept is copied as the bytes it is in the file.
"""
