"""The documentation site: `make docs` builds it into docs/_build/html."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import pages  # noqa: E402
from sphinx_gallery.sorting import FileNameSortKey  # noqa: E402

import varifold  # noqa: E402

project = "varifold"
author = "The varifold developers"
copyright = f"{author}. BSD 3-Clause licence"
smartquotes = False  # --option is copied as --option
version = release = varifold.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build", "symptoms", "*.py"]
nitpicky = False
default_role = "autolink"
suppress_warnings = ["config.cache"]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "symptoms",
    "gallery_dirs": "by-symptom",
    "filename_pattern": r"/plot_",
    "within_subsection_order": FileNameSortKey,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1000,
}

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "varifold"
html_static_path = ["_static"]
html_css_files = ["varifold.css"]
html_search_scorer = str(HERE / "search-scorer.js")
html_logo = html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_sidebars = {"index": [], "start": [], "engine": [], "changelog": [], "benchmarks": []}
html_theme_options = {
    "logo": {"text": "varifold"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 4,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}

pages.write(HERE)


def setup(app):
    """Leave decisions and the list of the API out of the search, where they would come before what explains a word."""

    def hide(app, env):
        for name in env.found_docs:
            if name.startswith("decisions/") or name == "reference/api":
                env.metadata[name]["nosearch"] = "1"

    app.connect("env-updated", hide)
