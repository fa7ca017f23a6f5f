"""Starting a client through the proxy. Law: flags, environment, a folder that goes; no file of the user's is touched.

`claude_code` composes what the client is started with, `terminal` starts it, `run` ties a run together. `setup` alone
writes into the user's own settings, when it is told to, and takes it back.
"""
