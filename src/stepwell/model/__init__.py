"""The nouns: what tables, views, epochs, files, writes and watermarks are, and one hierarchy of errors.

Plain values without input or output. Everything else speaks in them, and they know of nothing else.
"""
