"""Access to the server: tokens and their roles, and stored responses to repeated requests."""
