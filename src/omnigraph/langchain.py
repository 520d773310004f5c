"""A LangChain retriever: the rows of a query as documents.

It needs the package langchain-core: `pip install 'omnigraph[langchain]'`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import InvalidInput, install_command
from omnigraph.graph import Graph
from omnigraph.query.result import Result
from omnigraph.service.client import AsyncGraph, RemoteGraph

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    _needs = f"omnigraph.langchain needs the package langchain-core: {install_command('langchain')}"
    raise ImportError(_needs, name=error.name) from error


class OmniGraphRetriever(BaseRetriever):
    """Runs a query for a question; each row is a document.

    `query` declares the parameter that gets the question, by default `$question`; `params` are
    values of others. The text of a document is the column `content`, by default the first one; its
    ID is the column `id`, if it is given. The other columns are its metadata, with the commit that
    was read as `graph_commit_id`. `at` is a branch, tag, commit ID or time, by default the branch
    of the graph. With the graph of `og.aconnect`, `ainvoke` awaits the server.
    """

    graph: Graph | RemoteGraph | AsyncGraph
    query: str
    question: str = "question"
    params: Mapping[str, Any] | None = None
    content: str | None = None
    id: str | None = None
    at: str | None = None

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - as pydantic declares it
        """Raise InvalidInput if the question would have no effect."""
        super().model_post_init(context)
        if f"${self.question}" not in self.query:
            message = f"the query does not use the parameter `${self.question}`: declare it, as in "
            message += f"`query search(${self.question}: String) {{ … }}`, or pass `question=NAME`"
            raise InvalidInput(message, code="retriever_invalid")

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        if isinstance(self.graph, AsyncGraph):
            message = "the graph of `og.aconnect` is asynchronous: use `await retriever.ainvoke(…)`"
            raise InvalidInput(message, code="retriever_invalid")
        return self._documents(self.graph.query(self.query, self._values(query), at=self.at))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        if isinstance(self.graph, AsyncGraph):
            found = await self.graph.query(self.query, self._values(query), at=self.at)
            return self._documents(found)
        return await super()._aget_relevant_documents(query, run_manager=run_manager)

    def _values(self, question: str) -> dict[str, Any]:
        return {**(self.params or {}), self.question: question}

    def _documents(self, result: Result) -> list[Document]:
        content = result.columns[0] if self.content is None else self.content
        for name in (content, self.id):
            if name is not None and name not in result.columns:
                columns = ", ".join(f"`{one}`" for one in result.columns)
                message = f"the query returns no column `{name}`; its columns are {columns}"
                raise InvalidInput(message, code="retriever_invalid")
        commit = {"graph_commit_id": result.graph_commit_id}
        return [
            Document(
                page_content="" if row[content] is None else str(row[content]),
                id=None if self.id is None else str(row[self.id]),
                metadata={
                    name: value for name, value in row.items() if name not in (content, self.id)
                }
                | commit,
            )
            for row in result.rows
        ]
