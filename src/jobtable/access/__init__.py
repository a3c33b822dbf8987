"""Who may use the server: tokens and their roles, and the answers that a repeated request gets again."""
