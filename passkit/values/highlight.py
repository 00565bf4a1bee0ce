"""Syntax highlighting of kernels, for terminals and for notebooks."""

from __future__ import annotations

from html import escape

TERMINAL, HTML = "terminal", "html"
"""The kinds of output."""


def highlighted(text: str, language: str, output: str) -> str:
    """Return source code in colours; without pygments, the same text without colours.

    Args:
        text: The source code.
        language: The name of the language in pygments, such as "c++".
        output: TERMINAL for escape codes in the terminal's own colours, or HTML for the content of
            a ``pre`` element, with colours in the elements themselves.

    Returns: The text with colours; in HTML, its special characters are escaped in any case. With
        colours, a text without a line end gets one in HTML.

    Raises: ValueError where pygments does not know the language.
    """
    try:
        from pygments import highlight  # takes 30 ms, and only readers of kernels need it
        from pygments.formatters import HtmlFormatter, TerminalFormatter
        from pygments.lexers import get_lexer_by_name
    except ImportError:  # pygments comes with rich, which may be packaged without it
        return escape(text) if output == HTML else text
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    html = HtmlFormatter(noclasses=True, nowrap=True, style="vs")
    return str(highlight(text, lexer, html if output == HTML else TerminalFormatter()))
