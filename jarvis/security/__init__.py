"""Text from outside: cleaned for the database, fenced for the model, stripped for the terminal."""
