"""What turns notes into the site: Markdown blocks, checks, a thin MkDocs plugin, the command line."""
