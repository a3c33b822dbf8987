"""The analysis of a conversation as pure functions, one module a subject. Needs numpy and scikit-learn."""
