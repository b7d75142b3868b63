"""MiVaBO (Daxberger et al. 2019). Read ``mivabo`` first, then ``posterior``, ``functions`` and ``blocks``.

discrete_features are the blocks over levels, interactions the pairs that were declared to interact, evidence fits the prior
variances, sparse/ has sparse priors.
"""

from mipcash.methods.mivabo.mivabo import MiVaBO, MiVaBOSettings
from mipcash.optimizers.registry import Entry

__all__ = ["MIVABO", "PAPER", "MiVaBO", "MiVaBOSettings"]

MIVABO = Entry(MiVaBO, MiVaBOSettings)
PAPER = Entry(MiVaBO, MiVaBOSettings, MiVaBOSettings.paper)
