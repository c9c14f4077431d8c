"""What Jarvis does, without a terminal: every command is one call into this package."""
