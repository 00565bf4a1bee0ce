"""Words that the project no longer uses, with what to write instead."""

from __future__ import annotations

RETIRED = {
    r"\bWholes\b": "MatchLibrary",
}
