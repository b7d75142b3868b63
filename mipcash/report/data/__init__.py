"""Data of the pictures, shared by the HTML page and the matplotlib axes."""
