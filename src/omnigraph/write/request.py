"""This module defines what every write says about itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.commit.model import CommitId
from omnigraph.embed import Embedder
from omnigraph.embed.config import VectorsFrom
from omnigraph.errors import InvalidInput
from omnigraph.policy.gate import ALL_RIGHTS, Rights

UPKEEP = "optimize"
"""The operation of commits that change no entity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Who wants a change, where, and under which condition.

    `external_blobs` are the bases below which blobs may stay where they are, `embedder` makes
    vectors of texts; `vectors_from` is the model that made the vectors given, if that is known.
    `rights` say which types the actor may change and see.
    """

    branch: str
    operation: str
    actor: str | None = None
    message: str | None = None
    if_commit: CommitId | None = None
    external_blobs: tuple[str, ...] = ()
    embedder: Embedder = field(default_factory=Embedder)
    vectors_from: VectorsFrom = None
    rights: Rights = ALL_RIGHTS

    def __post_init__(self) -> None:
        for word, text in (("an actor", self.actor), ("a message", self.message)):
            try:
                (text or "").encode()
            except UnicodeEncodeError as error:
                message = f"{word} with half of a surrogate pair is no Unicode"
                raise InvalidInput(message, code="text_invalid") from error
