"""Embed the texts of a query by the model that made the vectors they are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from omnigraph.catalog.model import NodeType
from omnigraph.embed import Embedder, Role
from omnigraph.embed.embedder import agreed_embedder
from omnigraph.query.store import Table


@dataclass(frozen=True, slots=True)
class TextVectors:
    """The texts of one run of a query: each is embedded once, those of one call together."""

    embedder: Embedder
    _known: dict[tuple[str, int, str], npt.NDArray[np.float32]] = field(default_factory=dict)

    def of(
        self, table: Table, name: str, texts: Sequence[str]
    ) -> Mapping[str, npt.NDArray[np.float32]]:
        """Return the vectors of texts to be compared with a property, by text."""
        if not texts:
            return {}
        definition = table.type.definition
        assert isinstance(definition, NodeType), "only nodes have vectors that are searched"
        property_ = definition.properties[name]
        declared = None if property_.embed is None else property_.embed.model
        recorded = table.embedding_model(name)
        is_known = recorded is not None
        others = [recorded] if is_known or (declared is None and table.has_vectors(name)) else []
        place = f"{table.type.name}.{name}"
        embedder = agreed_embedder(self.embedder, place, declared, others)
        model, dimension = embedder.model, property_.type.dimension or 0
        missing = [t for t in dict.fromkeys(texts) if (model, dimension, t) not in self._known]
        if missing:
            vectors = embedder.embed(missing, dimension, Role.QUERY)
            self._known.update(zip([(model, dimension, t) for t in missing], vectors, strict=True))
        return {text: self._known[model, dimension, text] for text in texts}
