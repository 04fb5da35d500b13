"""Metrics of torchmetrics, and which of them look at values on the host.

Measured on an H200 with torchmetrics 1.9 and torch 2.11, as in `torch_calls`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooflint.flow.machine import Call
from rooflint.flow.places import gpu_tensors_in, is_false
from rooflint.flow.values import NONE, Instance, Tensor, Value, string_of

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter

_QUIET = frozenset(
    """MeanSquaredError MeanAbsoluteError CosineSimilarity MeanAbsolutePercentageError KLDivergence
    MeanSquaredLogError RelativeSquaredError SymmetricMeanAbsolutePercentageError
    WeightedMeanAbsolutePercentageError StructuralSimilarityIndexMeasure CalibrationError""".split()
)
_COUNTS = frozenset(
    "Accuracy F1Score FBetaScore Precision Recall StatScores Specificity HammingDistance".split()
)
"""Of several classes they count the distinct values of predictions that are whole numbers."""
_CURVES = frozenset("AUROC AveragePrecision ROC PrecisionRecallCurve".split())
_ALWAYS = frozenset(
    """ConfusionMatrix CohenKappa JaccardIndex MatthewsCorrCoef ExactMatch HingeLoss LogCoshError
    TweedieDevianceScore Perplexity PeakSignalNoiseRatio""".split()
)
_LOOKS_FOR_NAN = frozenset(
    """MeanMetric SumMetric MaxMetric MinMetric CatMetric RunningMean RunningSum""".split()
)
_AT_THE_END = frozenset(
    """R2Score PearsonCorrCoef SpearmanCorrCoef ExplainedVariance ConcordanceCorrCoef
    KendallRankCorrCoef""".split()
)
"""Quiet to update; they wait for their result, which calling the metric computes each time."""
_CHECKS_RESULT = frozenset("R2Score ExplainedVariance SpearmanCorrCoef".split())
_FUNCTIONS = frozenset(
    """auroc average_precision roc precision_recall_curve confusion_matrix cohen_kappa jaccard_index
    matthews_corrcoef r2_score pearson_corrcoef explained_variance""".split()
)
_COUNTING_FUNCTIONS = frozenset(
    "accuracy f1_score fbeta_score precision recall stat_scores specificity".split()
)
_TASK = r"^(Multiclass|Binary|Multilabel)"
_CHECKS = "the metric checks its input on the host"


def update_metric(it: Interpreter, one: Instance, call: Call, *, is_called: bool) -> None:
    """A metric takes in a batch; `is_called`: and gives back its value on it."""
    held = tuple(t for v in call.arguments for t in gpu_tensors_in(v))
    if not held:
        return
    waits = _waits(one, call, is_called)
    if waits is False:
        return
    it.machine.wait(
        "library",
        call.node,
        call.frame,
        held,
        detail="metric",
        sure=waits is True,
        reason=_CHECKS,
    )


def _waits(one: Instance, call: Call, is_called: bool) -> bool | None:
    """Whether a metric waits; None: nobody has measured that one."""
    keywords: dict[str, Value] = one.facts.get("keywords", {})
    name = one.path.rpartition(".")[2]
    prefix = re.match(_TASK, name)
    task = prefix[1].lower() if prefix else string_of(keywords.get("task", ()))
    name = re.sub(_TASK, "", name)
    checked = not is_false(keywords.get("validate_args"))
    if name in _QUIET:
        return False
    if name in _ALWAYS or name.startswith("Retrieval"):
        return True
    if name in _AT_THE_END:
        return is_called
    if name in _LOOKS_FOR_NAN:
        return string_of(keywords.get("nan_strategy", ())) != "disable"
    if name in _CURVES:
        if is_called or _has_thresholds(keywords):
            return True
        return checked if task == "multiclass" else False
    if name in _COUNTS:
        average = string_of(keywords.get("average", ())) or ("macro" if prefix else "micro")
        if "top_k" in keywords and not checked:
            return False
        if task == "multiclass" and (average != "micro" or "ignore_index" in keywords):
            # By class it counts with bincount; what is to be ignored is left out by a mask.
            return True
        if not checked:
            return False
        if task == "binary":
            return True
        return _are_whole(call.argument(0, "preds")) if task == "multiclass" else None
    return None


def compute_metric(it: Interpreter, one: Instance, call: Call) -> None:
    """A metric is asked for its value over all that it took in."""
    name = re.sub(_TASK, "", one.path.rpartition(".")[2])
    over_all = name in _CURVES and not _has_thresholds(one.facts.get("keywords", {}))
    if one.place == "gpu" and (over_all or name in _CHECKS_RESULT):
        metric: Value = (Tensor("gpu", one.sure),)
        why = "the metric computes its value from all that it took in, with checks on the host"
        it.machine.wait(
            "library", call.node, call.frame, metric, detail="metric", sure=True, reason=why
        )


def metric_function(it: Interpreter, name: str, call: Call) -> None:
    """A metric's function of `torchmetrics.functional`."""
    held = tuple(t for v in call.arguments for t in gpu_tensors_in(v))
    average = string_of(call.keywords.get("average", ())) or "micro"
    by_class = name in _COUNTING_FUNCTIONS and average != "micro"
    if held and (name in _FUNCTIONS or by_class):
        it.machine.wait(
            "library", call.node, call.frame, held, detail="metric", sure=True, reason=_CHECKS
        )


def _has_thresholds(keywords: dict[str, Value]) -> bool:
    return keywords.get("thresholds", NONE) != NONE


def _are_whole(predictions: Value | None) -> bool | None:
    kinds = {a.kind for a in predictions or () if isinstance(a, Tensor)}
    if kinds <= {"int", "bool"} and kinds:
        return True
    return False if kinds == {"float"} else None
