"""What all parts of a graph share: its manifest, its branch, its permission checks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from omnigraph.commit.commit_log import CommitLog, find_divergence
from omnigraph.commit.history import find_commit
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, CommitId, Snapshot
from omnigraph.commit.protection import WritePermit
from omnigraph.commit.snapshot import SnapshotRef, apply_scope, head_snapshot, resolve_snapshot
from omnigraph.errors import InvalidInput
from omnigraph.graph.modes import OpenMode
from omnigraph.graph.protocol import CommitOptions
from omnigraph.lang import QueryError
from omnigraph.merge.conflicts import Conflict, MergeConflicts
from omnigraph.plan import MutationPlan, ReadPlan, compile_query
from omnigraph.policy import ALL_TYPES, PolicyAction, PolicyDenied, TypeScope
from omnigraph.policy.authorization import ALLOW_ALL, Authorizer
from omnigraph.query.checks import StateCheck
from omnigraph.query.engine import Engine
from omnigraph.write.request import DEFAULT_TIMEOUT_SECONDS, WriteRequest, permit_for


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphContext:
    """A graph, its actor, and its default branch.

    `external_blobs` are places below which blobs given as a URI may lie. Everything that reads
    or writes checks the `gate` first.
    """

    manifest: Manifest
    engine: Engine
    mode: OpenMode
    gate: Authorizer = ALLOW_ALL
    current_branch: str = MAIN
    external_blobs: tuple[str, ...] = ()
    verified: bool = False
    """Whether a server identified the actor; otherwise the name is a claim."""
    checks: tuple[StateCheck, ...] = ()
    """Checks that run on the state that a proposal would make, before it is merged."""

    def snapshot(
        self, at: SnapshotRef | None = None, action: PolicyAction = PolicyAction.READ
    ) -> Snapshot:
        """Return what the actor may see of the state a branch, tag, commit id or time names."""
        state = self.state(at)
        return apply_scope(self.manifest, state, self.gate.check(action, state.branch))

    def state(self, at: SnapshotRef | None = None) -> Snapshot:
        """Return a whole state, for callers that check other permissions."""
        self.gate.check_actor()
        return resolve_snapshot(
            self.manifest, self.current_branch if at is None else at, branch=self.current_branch
        )

    def on_branch(self, name: str) -> GraphContext:
        """Return the same with another default branch."""
        return replace(self, current_branch=name)

    def branch(self, name: str | None) -> str:
        """Return the branch that is meant, in its plain spelling."""
        return (self.current_branch if name is None else name).strip()

    def has_branch(self, name: str) -> bool:
        """Return whether a branch of this name exists."""
        self.gate.check_actor()
        return name.strip() == MAIN or name.strip() in self.manifest.branches()

    def known_branches(self) -> list[str]:
        """Return the names of the branches the actor may see, sorted."""
        self.gate.check(PolicyAction.READ)
        return sorted([MAIN, *self.manifest.branches()])

    def check_create(self, from_: SnapshotRef | None, name: str) -> Snapshot:
        """Allow a new name for a state; return the state."""
        state = self.state(from_)
        self.gate.check(PolicyAction.BRANCH_CREATE, state.branch, name.strip())
        return state

    def check_preview(self, source: str, target: str) -> None:
        """Allow to look at what a merge would do: it shows both branches and changes nothing.

        A result shows what the target shows; where the source shows something else, all must be
        seen.
        """
        seen_there = {self.gate.check(PolicyAction.READ, branch) for branch in (source, target)}
        if len(seen_there) > 1:
            self.gate.require_unrestricted("a preview of a merge", source, target)

    def check_conflicts_shown(
        self, conflicts: Sequence[Conflict], source: str, target: str
    ) -> None:
        """Raise MergeConflicts without conflicts that may not be looked at in advance either."""
        try:
            if conflicts:
                self.check_preview(source, target)
        except PolicyDenied:
            raise MergeConflicts((), target, hidden=len(conflicts)) from None

    def check_fork(self, branch: str | None, from_: str | None) -> None:
        """Allow a load to create the branch it goes to, if it would."""
        name = self.branch(branch)
        if self.gate.policy is not None and from_ is not None and not self.has_branch(name):
            self.check_create(from_, name)

    def commit_sight(self, id_: str) -> TypeScope:
        """Allow to look at what a commit did; return what of it may be seen."""
        if self.gate.policy is None:
            return ALL_TYPES
        self.gate.check_actor()
        return self.gate.check(PolicyAction.READ, find_commit(self.manifest, id_)[0].commit.branch)

    def check_cherry_pick(self, id_: str, branch: str) -> None:
        """Allow to apply a commit to a branch, which must not show more than that of the commit."""
        sight = self.commit_sight(id_)
        if not sight.is_everything and sight != self.gate.allowed_types(PolicyAction.READ, branch):
            published_on = find_commit(self.manifest, id_)[0].commit.branch
            self.gate.require_unrestricted("changes of another branch", published_on, branch)

    def check_revert(self, id_: str, branch: str) -> None:
        """Allow to revert a commit, which shows what was there before.

        A branch shows its own history; any other commit must be readable where it was published.
        """
        if self.gate.policy is not None and not self._descends_from(branch, id_):
            self.check_cherry_pick(id_, branch)

    def _descends_from(self, branch: str, id_: str) -> bool:
        head, commit_id = head_snapshot(self.manifest, branch), CommitId(id_)
        state = self.manifest.lineage(head.lineage_id).state()
        log = CommitLog(self.manifest.history_states(state))
        return (
            commit_id in log and commit_id in find_divergence(log, head.commit_id, commit_id).bases
        )

    def can_name(self, source: str, name: str) -> bool:
        """Return whether the actor may name all that a query names, on some branch."""
        if self.gate.policy is None or self.gate.is_unrestricted():
            return True
        state = head_snapshot(self.manifest, MAIN)
        for branch in self.gate.policy.representative_branches:
            readable, named = (
                self.gate.allowed_types(PolicyAction.READ, branch),
                self.gate.merge_rights(branch).named,
            )
            for scope, kind in ((readable, ReadPlan), (named, MutationPlan)):
                with suppress(QueryError):
                    catalog = apply_scope(self.manifest, state, scope).catalog
                    if isinstance(compile_query(catalog, source, name), kind):
                        return True
        return False

    def query_owner(self) -> str | None:
        """Return whose running queries the actor may list and cancel; None for those of all."""
        if not self.gate.is_allowed_somewhere(PolicyAction.READ):
            self.gate.check(PolicyAction.READ)
        may_all = self.gate.is_allowed_somewhere(PolicyAction.ADMIN)
        return None if may_all else self.gate.actor

    def check_maintenance(self, what: str) -> None:
        """Check the permission for maintenance, which sees and changes everything."""
        self.gate.check(PolicyAction.ADMIN)
        self.gate.require_unrestricted(what)

    def write_request(self, operation: str, target: CommitOptions) -> WriteRequest:
        """Check the permission to change a branch; return the description of the write."""
        rights = self.gate.change_rights(self.branch(target.branch))
        return replace(self.request(operation, target), rights=rights)

    def merge_request(self, operation: str, target: CommitOptions) -> WriteRequest:
        """Return the description of a write that applies changes of another state."""
        rights = self.gate.merge_rights(self.branch(target.branch))
        return replace(self.request(operation, target), rights=rights)

    def pipeline_request(
        self, operation: str, branch: str | None, message: str | None
    ) -> WriteRequest:
        """Allow a pipeline to write to a branch, which it may have to create, merge or delete."""
        name, target = self.branch(branch), CommitOptions(branch, message)
        if operation == "branch_delete":
            self.gate.check(PolicyAction.BRANCH_DELETE, target_branch=name)
            return self.request(operation, target)
        if operation == "merge":
            self.gate.check(PolicyAction.BRANCH_MERGE, target_branch=name)
            return self.merge_request(operation, target)
        if self.gate.policy is not None and not self.has_branch(name):
            self.gate.check(PolicyAction.BRANCH_CREATE, target_branch=name)
        return self.write_request(operation, target)

    def request(self, operation: str, target: CommitOptions) -> WriteRequest:
        """Return the description of a write that is allowed."""
        self.require_writable()
        return self._request(operation, target)

    def preview_request(self, operation: str, target: CommitOptions) -> WriteRequest:
        """Return the description of a merge that is only tried, also on a read-only graph."""
        rights = self.gate.merge_rights(self.branch(target.branch))
        return replace(self._request(operation, target), rights=rights)

    def _request(self, operation: str, target: CommitOptions) -> WriteRequest:
        return WriteRequest(
            branch=self.branch(target.branch),
            operation=operation,
            actor=self.gate.actor,
            message=target.message,
            if_commit=None if target.if_commit is None else CommitId(target.if_commit),
            external_blobs=self.external_blobs,
            embedder=self.engine.embedder,
            permit=self.permit(target.branch),
            timeout=DEFAULT_TIMEOUT_SECONDS if target.timeout is None else target.timeout,
        )

    def permit(self, branch: str | None) -> WritePermit:
        """Return what the actor shows where a branch, or a tag, is protected."""
        return permit_for(self.gate, self.branch(branch))

    def require_writable(self) -> None:
        """Refuse to write to a graph that was opened to be read."""
        if self.mode != "rw":
            raise InvalidInput("this graph is open read-only", code="read_only")
