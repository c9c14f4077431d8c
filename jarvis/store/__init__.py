"""Everything that speaks SQL. No other package imports ``psycopg``."""
