"""Landmarks of the theme get names of their own."""

from flower_site.landmarks import with_unique_landmarks


def test_a_nested_navigation_is_named_by_its_title() -> None:
    html = (
        '<nav class="md-nav" data-md-level="1" aria-labelledby="__nav_3_label">'
        '<label class="md-nav__title" for="__nav_3">卡片</label>'
    )
    assert with_unique_landmarks(html) == (
        '<nav class="md-nav" data-md-level="1" aria-labelledby="__nav_3_title">'
        '<label class="md-nav__title" id="__nav_3_title" for="__nav_3">卡片</label>'
    )


def test_breadcrumbs_do_not_share_the_name_of_the_navigation() -> None:
    html = (
        '<nav class="md-nav" aria-label="导航栏"></nav><nav class="md-path" aria-label="导航栏" >'
    )
    assert with_unique_landmarks(html).count("导航栏") == 1
