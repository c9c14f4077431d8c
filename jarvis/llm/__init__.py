"""Language models behind two small protocols. No other package imports ``ollama``."""
