"""Reports: what became of a model, as a folder of files and as one page to click through."""

from passkit.reporting.folder import write_report
from passkit.reporting.page import page

__all__ = ["page", "write_report"]
