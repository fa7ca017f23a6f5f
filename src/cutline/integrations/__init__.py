"""Other people's libraries, met where they allow it: thin, one file each.

Law: nothing is decided here. A library is imported by its own file only, and only what it was handed is touched.
"""
