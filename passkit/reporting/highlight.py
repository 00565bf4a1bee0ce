"""Syntax highlighting of kernels, for terminals and for notebooks."""

from __future__ import annotations

from html import escape

TERMINAL, HTML = "terminal", "html"


def highlighted(text: str, language: str, output: str) -> str:
    """Return source code in colours; without pygments, the same text without them.

    Args:
        text: The source code.
        language: A name that pygments knows the language by, such as "c++".
        output: TERMINAL for escape codes in the terminal's own colours, or HTML for spans that
            carry their colours themselves, to stand inside a ``pre`` element.
    """
    try:
        from pygments import highlight  # costs 30 ms, and only readers of kernels pay it
        from pygments.formatters import HtmlFormatter, TerminalFormatter
        from pygments.lexers import get_lexer_by_name
    except ImportError:  # it comes with rich, which may be built without it
        return escape(text) if output == HTML else text
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    html = HtmlFormatter(noclasses=True, nowrap=True, style="vs")
    return str(highlight(text, lexer, html if output == HTML else TerminalFormatter()))
