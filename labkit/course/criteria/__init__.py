"""What an answer is judged by."""
