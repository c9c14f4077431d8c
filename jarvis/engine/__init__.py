"""The embedded model server: Ollama's HTTP API on a Unix socket, over llama.cpp.

::

    launcher ── starts ──> server (one process, standard library only)
                             │  api: routes · chat, generate, embed
                             │  pool: which models are loaded, for how long
                             └── runner (one child process a loaded model; ``xllamacpp``)

The server never loads llama.cpp: each model runs in a child of its own, on a socket in the same
0700 folder. A file or a request that crashes llama.cpp costs that child and one error, and
unloading a model gives its memory back for certain.

For clients of ours:

- ``launcher.ensure_running(paths, config)`` returns the socket; connecting to it is plain HTTP.
  An engine may leave between that and the request: a connection that fails before the first
  byte of an answer means "call ``ensure_running`` again and retry once".
- The header ``X-Jarvis-Background: 1`` marks work that nobody waits for. It starts only while
  no other request runs, and a chat that comes meanwhile cancels it: status 503 (or, when its
  stream has begun, a last line ``{"error": "preempted …"}``). The work is to be queued again.
  A background ``/api/embed`` is not cancelled, it pauses between small batches.
- The last line of ``/api/chat`` and ``/api/generate`` has ``prompt_cached_count`` besides
  Ollama's fields: tokens of ``prompt_eval_count`` that came from the prompt cache.
- ``/api/show`` has ``speeds``: ``{"prompt_per_second", "generate_per_second", "batch"}`` as
  measured on this machine, once the model has been loaded here; ``speeds.read`` is the same.
"""
