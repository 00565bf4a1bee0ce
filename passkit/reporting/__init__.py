"""Reports of compiled models: a page, traces, statistics, notebook displays, and bisection."""

from passkit.reporting.report import report_page, write_report

__all__ = ["report_page", "write_report"]
