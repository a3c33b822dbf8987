"""Conversation analysis: embeddings, layouts, clusters, topics and extremity of comments, all kept by job."""
