"""The database: its tables, its migrations, and one store per kind of row."""
