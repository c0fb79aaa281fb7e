"""Scores of a discovery whose true classes are known. Importing it needs neither torch nor scikit-learn."""

from newkind.evaluation.accuracy import Accuracy, accuracy, ari, nmi
from newkind.evaluation.by_name import by_name, match_by_name
from newkind.evaluation.calibration import calibration_error
from newkind.evaluation.distribution import ClassRow, Distribution, class_table
from newkind.evaluation.error_kinds import ErrorKinds
from newkind.evaluation.evaluation import Evaluation, SureScores, evaluate
from newkind.evaluation.matching import Matching, match
from newkind.evaluation.novelty import NoveltyThreshold, novelty_auroc, novelty_threshold

__all__ = [
    "Accuracy",
    "ClassRow",
    "Distribution",
    "ErrorKinds",
    "Evaluation",
    "Matching",
    "NoveltyThreshold",
    "SureScores",
    "accuracy",
    "ari",
    "by_name",
    "calibration_error",
    "class_table",
    "evaluate",
    "match",
    "match_by_name",
    "nmi",
    "novelty_auroc",
    "novelty_threshold",
]
