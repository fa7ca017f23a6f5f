"""The supervised terminal agent: its loop, its tools, its events. Law: above the transport, below the command line."""
