"""Python-Markdown extensions of the site: one module each, usable in MkDocs, in Zensical and
alone.
"""
