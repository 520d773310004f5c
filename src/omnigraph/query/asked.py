"""This module embeds the texts a query asks about, by the model that made what it compares with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from omnigraph.catalog.model import NodeType
from omnigraph.embed import Embedder, Role
from omnigraph.embed.embedder import check_model
from omnigraph.query.store import Table


@dataclass(frozen=True, slots=True)
class TextVectors:
    """The texts of one run of a query: each is embedded once, those of one call together."""

    embedder: Embedder
    _known: dict[tuple[int, str], npt.NDArray[np.float32]] = field(default_factory=dict)

    def of(
        self, table: Table, name: str, texts: Sequence[str]
    ) -> Mapping[str, npt.NDArray[np.float32]]:
        """Return the vectors of texts to be compared with a property, by text."""
        if not texts:
            return {}
        definition = table.type.definition
        assert isinstance(definition, NodeType), "only nodes have vectors that are searched"
        property_ = definition.properties[name]
        place, model = f"{table.type.name}.{name}", self.embedder.model
        declared = None if property_.embed is None else property_.embed.model
        check_model(place, declared, model, declared=True)
        check_model(place, table.embedding_model(name), model, declared=False)
        dimension = property_.type.dimension or 0
        missing = [t for t in dict.fromkeys(texts) if (dimension, t) not in self._known]
        if missing:
            vectors = self.embedder.embed(missing, dimension, Role.QUERY)
            self._known.update(zip([(dimension, t) for t in missing], vectors, strict=True))
        return {text: self._known[dimension, text] for text in texts}
