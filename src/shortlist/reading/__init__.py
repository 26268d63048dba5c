"""Files that users give: text, columns, and scores; every error names the file, line and rule."""
