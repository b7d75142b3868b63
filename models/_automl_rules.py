"""Rules of the pipelines of Tables A2 and A3 and of the usual ones: on algorithms, their hyperparameters and their order.

Only what cannot work is ruled out (what scikit-learn refuses, or what no machine would finish), and what would say the same thing
twice. What depends on the rows beyond :class:`~mipcash.models._pipeline_parts.Facts` (a selection that leaves no column,
collinear columns in discriminant analysis, a kernel that is not positive) fails when it is evaluated, and is learned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import mipcash as mc
from mipcash.models._automl_usual import CALIBRATION_FOLDS, INTERACTING, NEEDS_SCALE
from mipcash.models._pipeline_parts import Facts, before, idle_last, most_inputs, no_more_leaves_than_room

MOST_FEATURES = 2000
"""Columns that polynomial features may make."""
MOST_GP_ROWS = 500
"""Rows of a fold up to which a Gaussian process, cubic in them and iterated, is fitted in a minute or so."""
MOST_SVM_ROWS = 5000
"""The same of a support vector machine, which calibration fits four times."""
MOST_KERNEL_ROWS, MOST_DENSE_ROWS = 10_000, 2000
"""Rows up to which a kernel's matrix is made, and all of its eigenvectors."""
FEWEST_COMPONENTS = 2
COMPONENTS = {
    "sparse_projection": "columns",
    "gaussian_projection": "columns",
    "rbf_sampler": None,
    "nystroem": "rows",
    "truncated_svd": "columns",
    "kernel_pca": "rows",
    "fast_ica": "columns",
    "factor_analysis": "columns",
}
"""Transformers with a number of components -> what bounds it."""
NEEDS = {"poly": {"gamma", "degree", "coef0"}, "sigmoid": {"gamma", "coef0"}, "cosine": set[str]()}
"""Kernel -> the hyperparameters that it has; others have gamma alone."""


class Rules:
    """Adds the rules of pipelines to a space.

    Args:
        modules: scaler, transformer, selector (absent from A3) and estimator, by name.
        facts: of the data.
        order: of the modules before the estimator; None: they run as listed.
        tuned: False: the modules have no hyperparameters, and only rules on algorithms are added.
    """

    def __init__(
        self, space: mc.Space, modules: Mapping[str, Any], facts: Facts, order: Any = None, tuned: bool = True
    ) -> None:
        self.space, self.facts, self.order, self.tuned = space, facts, order, tuned
        self.scaler, self.transformer = modules["scaler"], modules["transformer"]
        self.selector, self.estimator = modules.get("selector"), modules["estimator"]
        self.before_estimator = [m for m in (self.scaler, self.transformer, self.selector) if m is not None]

    def add(self) -> None:
        """All of them."""
        if self.order is not None:
            self._order()
        self._compositions()
        self._components()
        self._polynomials()
        if self.tuned:
            self._sizes()
            self._signs()
            self._unused()

    def _has(self, module: Any, algorithm: str, hyper: str | None = None) -> bool:
        there = module is not None and algorithm in module.domain.values
        return there and (hyper is None or hyper in module.hyperparameters[algorithm])

    def _order(self) -> None:
        idle_last(self.space, self.order, self.before_estimator)
        if self.selector is not None:
            # fewer columns may come in than components go out, where a selector stands before
            bounded = [a for a, by in COMPONENTS.items() if by == "columns" and self._has(self.transformer, a)]
            if bounded:
                when = [self.transformer.is_(*bounded), 1 - self.selector["none"]]
                before(self.space, self.order, "components are of all columns", self.transformer, self.selector, when)

    def _compositions(self) -> None:
        """Algorithms that cannot be used with these data."""
        facts, space = self.facts, self.space
        if self._has(self.scaler, "binarizer") and not facts.straddles:
            space.rule("binarizer: no column has values on both sides of 0", self.scaler["binarizer"] <= 0)
        if self._has(self.estimator, "gaussian_process") and facts.fold_rows > MOST_GP_ROWS:
            space.rule(f"gaussian_process: at most {MOST_GP_ROWS} rows", self.estimator["gaussian_process"] <= 0)
        if self._has(self.estimator, "svm"):
            needing = [a for a in NEEDS_SCALE if self._has(self.estimator, a)]
            space.rule(
                f"columns of one scale: {', '.join(needing)}", self.estimator.is_(*needing) + self.scaler["none"] <= 1
            )
            space.rule("columns of one scale: pca", self.transformer["pca"] + self.scaler["none"] <= 1)
            polynomial = self.transformer["polynomial"] + self.estimator.is_(*INTERACTING)
            space.rule("polynomial features are for estimators without interactions of their own", polynomial <= 1)
            if facts.fold_rows > MOST_SVM_ROWS:
                space.rule(f"svm: at most {MOST_SVM_ROWS} rows", self.estimator["svm"] <= 0)
            if facts.fold_class_rows < CALIBRATION_FOLDS:
                space.rule(f"svm: {CALIBRATION_FOLDS} rows of each class", self.estimator["svm"] <= 0)
            if facts.columns == 1:
                space.rule("percentile: nothing to select of one column", self.selector["percentile"] <= 0)
            if self.order is not None:
                before(
                    space,
                    self.order,
                    "pca comes after the scaler",
                    self.scaler,
                    self.transformer,
                    [self.transformer["pca"]],
                )
        if self._has(self.transformer, "kernel_pca"):
            if facts.fold_rows > MOST_KERNEL_ROWS:
                space.rule(f"kernel_pca: at most {MOST_KERNEL_ROWS} rows", self.transformer["kernel_pca"] <= 0)
            elif self.tuned and facts.fold_rows > MOST_DENSE_ROWS:
                dense = self.transformer.parameter("kernel_pca", "eigen_solver")["dense"]
                space.rule(f"kernel_pca: all eigenvectors of at most {MOST_DENSE_ROWS} rows", dense <= 0)
        if self._has(self.estimator, "sgd"):
            raw = self.scaler["none"]
            if self.tuned:
                raw = raw + self.scaler["robust"] - self.scaler.parameter("robust", "with_scaling")[True]
            space.rule("sgd diverges unless columns have one scale", self.estimator["sgd"] + raw <= 1)

    def _polynomials(self) -> None:
        """k columns make C(k + degree, degree) polynomial features; discriminant analysis has fewer columns than class rows."""
        k, facts = self.facts.columns, self.facts
        for d in (2, 3):
            if k <= most_inputs(d, MOST_FEATURES):
                continue
            self._narrowed(f"at most {MOST_FEATURES} features, degree {d}", d, most_inputs(d, MOST_FEATURES), [])
        if self._has(self.estimator, "qda"):
            most = facts.fold_class_rows - 1
            self._few_columns(self.estimator["qda"], most)

    def _degree(self, d: int) -> Any:
        """Return the condition that polynomial features of degree d are made; without hyperparameters the degree is 2."""
        if self._has(self.transformer, "polynomial", "degree"):
            return self.transformer.parameter("polynomial", "degree").is_(d)
        return self.transformer["polynomial"] if d == 2 else None

    def _narrowed(self, rule: str, d: int, most: int, when: Sequence[Any]) -> None:
        """Polynomials are of at most so many columns, which a percentile that stands before may see to."""
        degree = self._degree(d)
        if degree is None:
            return
        reason = f"polynomial: {rule}"
        if self.order is None or self.selector is None:
            self.space.rule(reason, degree + sum(when) <= len(when))
            return
        self.space.rule(f"{reason}: of a percentile", self.selector["percentile"] >= 1, when=[degree, *when])
        if self.tuned:
            percentile = self.selector.parameter("percentile", "percentile")
            columns = percentile * self.facts.columns / 100
            self.space.rule(f"{reason}: of at most {most} columns", columns <= most, when=[degree, *when])
        before(self.space, self.order, f"{reason}: selected before", self.selector, self.transformer, [degree, *when])

    def _few_columns(self, user: Any, most: int) -> None:
        """An estimator that takes at most so many columns.

        What comes in is bounded: by the components, by the columns or polynomials, and by a percentile of these.
        """
        k, space = self.facts.columns, self.space
        made = [a for a in COMPONENTS if self._has(self.transformer, a)]
        if most < FEWEST_COMPONENTS and made:
            space.rule(f"qda: at most {most} columns of components", user + self.transformer.is_(*made) <= 1)
        elif self.tuned:
            for a in made:
                components = self.transformer.parameter(a, "n_components")
                if components.domain.high > most:
                    rule = f"qda: at most {most} columns from {a}"
                    space.rule(rule, components <= most, when=[user, self.transformer[a]])
        widths = [("the data", k, self.transformer.is_("none", "pca"))]
        widths += [
            (f"degree {d}", math.comb(k + d, d), degree) for d in (2, 3) if (degree := self._degree(d)) is not None
        ]
        for what, width, there in widths:
            if width <= most:
                continue
            rule = f"qda: at most {most} columns, of {width} of {what}"
            selected_first = self.order is None and self._has(self.estimator, "svm") and width > k
            if self.selector is None or selected_first or 100 * most // width < 1:
                space.rule(rule, user + there <= 1)
                continue
            space.rule(f"{rule}: a percentile", self.selector["percentile"] >= 1, when=[user, there])
            if self.tuned:
                percentile = self.selector.parameter("percentile", "percentile")
                space.rule(rule, percentile * width / 100 <= most, when=[user, there])
            if self.order is not None and width > k:
                before(space, self.order, f"{rule}: selected of them", self.transformer, self.selector, [user, there])

    def _sizes(self) -> None:
        """Numbers that the rows of a fold bound; scikit-learn would clip some with a warning, and refuse others."""
        rows, space = self.facts.fold_rows, self.space
        bounded = [
            (self.scaler, "quantile", "n_quantiles"),
            (self.estimator, "knn", "n_neighbors"),
            (self.estimator, "mlp", "batch_size"),
        ]
        for module, algorithm, name in bounded:
            if self._has(module, algorithm, name):
                rule = f"{algorithm}: {name} at most the rows of a fold"
                space.rule(rule, module.parameter(algorithm, name) <= rows, when=module[algorithm])
        if self._has(self.scaler, "robust"):
            does = [self.scaler.parameter("robust", name)[True] for name in ("with_centering", "with_scaling")]
            space.rule("robust does something", sum(does) >= 1, when=self.scaler["robust"])
        if not self._has(self.estimator, "gradient_boosting"):
            return
        boosting = self.estimator["gradient_boosting"]
        depth, leaves = (self.estimator.parameter("gradient_boosting", n) for n in ("max_depth", "max_leaf_nodes"))
        no_more_leaves_than_room(space, boosting, depth, leaves)

    def _components(self) -> None:
        """Components are no more than the columns, or the rows, that they are made of."""
        for algorithm, by in COMPONENTS.items():
            if by is None or not self._has(self.transformer, algorithm):
                continue
            most = self.facts.fold_rows if by == "rows" else min(self.facts.columns, self.facts.fold_rows)
            most -= algorithm == "truncated_svd"  # arpack finds all but one
            rule, used = f"{algorithm}: at most {most} components, of {by}", self.transformer[algorithm]
            if most < FEWEST_COMPONENTS:
                self.space.rule(rule, used <= 0)
            elif self.tuned:
                components = self.transformer.parameter(algorithm, "n_components")
                if components.domain.high > most:
                    self.space.rule(rule, components <= most, when=used)

    def _signs(self) -> None:
        """The chi-squared kernel takes no negative inputs."""
        if not self._has(self.transformer, "nystroem"):
            return
        chi2 = self.transformer.parameter("nystroem", "kernel")["chi2"]
        output = self.scaler.parameter("quantile", "output_distribution")
        centered = self.scaler.parameter("robust", "with_centering")[True]
        what = {"standard": self.scaler["standard"], "normal quantiles": output["normal"], "robust": centered}
        for name, negative in what.items():
            self._no_negative(f"nystroem chi2: no negative inputs from {name}", chi2, negative)
        if not self.facts.nonnegative:
            safe = self.scaler.is_("minmax", "binarizer", "kbins") + output["uniform"]
            self.space.rule("nystroem chi2: the data have negative values", chi2 <= safe)
            if self.order is not None:
                rule = "nystroem chi2: scaled before, as the data have negative values"
                before(self.space, self.order, rule, self.scaler, self.transformer, [chi2])

    def _no_negative(self, rule: str, user: Any, negative: Any) -> None:
        if self.order is None:
            self.space.rule(rule, user + negative <= 1)
        else:
            before(self.space, self.order, rule, self.transformer, self.scaler, [user, negative])

    def _unused(self) -> None:
        """Fix hyperparameters that a kernel, a penalty or an algorithm does not use at their lowest value, to avoid duplicates."""
        for algorithm in ("nystroem", "kernel_pca"):
            if self._has(self.transformer, algorithm):
                kernel = self.transformer.parameter(algorithm, "kernel")
                for name in ("gamma", "degree", "coef0"):
                    using = [k for k in kernel.domain.values if name in NEEDS.get(k, {"gamma"})]
                    self._lowest(self.transformer, algorithm, name, kernel.is_(*using), f"kernels {', '.join(using)}")
        if self._has(self.transformer, "fast_ica"):
            whitened = self.transformer.parameter("fast_ica", "whiten")["unit-variance"]
            self._lowest(self.transformer, "fast_ica", "n_components", whitened, "whitening")
        if self._has(self.estimator, "svm"):
            rbf = self.estimator.parameter("svm", "kernel")["rbf"]
            self._lowest(self.estimator, "svm", "gamma", rbf, "the kernel rbf")
        if self._has(self.estimator, "sgd"):
            elastic = self.estimator.parameter("sgd", "penalty")["elasticnet"]
            self._lowest(self.estimator, "sgd", "l1_ratio", elastic, "elasticnet")

    def _lowest(self, module: Any, algorithm: str, name: str, used: Any, by: str) -> None:
        parameter = module.parameter(algorithm, name)
        rule = f"{algorithm}: {name} is of {by} alone"
        self.space.rule(rule, parameter <= parameter.domain.low, when=[module[algorithm], 1 - used])
