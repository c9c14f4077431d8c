"""From a file to passages: extractors, the chunker, and the child process they run in.

Pure: no database, no model. ``sandbox.Reader`` is what services use; everything that touches
the bytes of a file (``extract`` and the modules below it) is imported in the child only.
"""
