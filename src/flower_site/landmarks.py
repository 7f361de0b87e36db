"""Names for the theme's landmarks, so that a screen reader can tell them apart.

Material gives the breadcrumbs the name of the main navigation, and the search dialog, the tags and
the nested navigations none. Changing finished HTML spares us copies of five of its templates; the
accessibility test notices when the theme changes.
"""

from __future__ import annotations

import re

_NAMES = {
    '<div class="md-search" data-md-component="search" role="dialog">': (
        '<div class="md-search" data-md-component="search" role="dialog" aria-label="搜索">'
    ),
    '<nav class="md-path" aria-label="导航栏"': '<nav class="md-path" aria-label="当前位置"',
    '<nav class="md-tags"': '<nav class="md-tags" aria-label="本页标签"',
}
_NESTED = re.compile(r'(<nav class="md-nav" data-md-level="\d" aria-labelledby="__nav\w*?)_label"')
_NESTED_TITLE = re.compile(r'<label class="md-nav__title" for="(__nav\w*)">')


def with_unique_landmarks(html: str) -> str:
    """The page with a name for each landmark: nested navigations are named by their own title."""
    for old, new in _NAMES.items():
        html = html.replace(old, new)
    html = _NESTED.sub(r'\1_title"', html)
    return _NESTED_TITLE.sub(r'<label class="md-nav__title" id="\1_title" for="\1">', html)
