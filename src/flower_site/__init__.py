"""What turns notes into the site: Markdown blocks, checks, a MkDocs plugin, the command line."""
