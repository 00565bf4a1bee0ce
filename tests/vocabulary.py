"""The folders whose language is settled, and the words that they no longer use."""

from __future__ import annotations

FINISHED: tuple[str, ...] = ("tests/language.py",)
"""Folders and files that `test_vocabulary.py` checks."""

RETIRED = {
    r"\bWholes\b": "MatchLibrary",
    r"\bSumProducts\b": "FuseMatmulSums",
    r"\bF(Whole|Sum|Run)\b": "FLibraryPattern, FContractSum or FHostCall",
    r"\bladders?\b": "pipeline",
    r"\b(the|this) house\b|\bthe floors?\b": "the layers of the code",
    r"\bcrews?\b|\bCrew\b": "thread group",
    r"\btwins?\b|\bTwin\b": "equivalent",
    r"\b(go|goes|went|gone) round\b": "iterates",
    r"\bspelled out\b": "written out, or expressed in operators",
    r"\bis told\b|\bare told\b|\btells? (nothing|nobody)\b": "is given, or receives",
    r"\bwhoever\b|\bWhoever\b": "the caller, or the user",
    r"\bof its own accord\b": "by itself",
    r"\bsmall folds?\b|\bfolds? over\b": "reduction",
}
"""Regular expressions of retired words in code and prose, with their replacements."""
