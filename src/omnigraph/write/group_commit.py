"""Publish the small changes that wait for a branch as one group.

The leader of the queue prepares each change on the newest state, in order. A change joins the group
if it relies on nothing that the changes before it write; otherwise it waits for the next group. So
the result is that of publishing the changes one after the other. Changes that only add rows are
validated together, and the rows they add to a type are one fragment of one version: the state after
each of them is that version without the rows of later ones. A change that replaces or deletes rows
gets a version of its own.

While another process has the turn, the leader prepares the group on the state it knows and writes
its rows. In the turn it only makes versions of them on the newest state; changes that rely on what
was committed meanwhile are prepared again. A group that only adds rows is left for the process that
has the turn, which publishes it with its own if it relies on nothing that was committed meanwhile
or is published with it (`commit/prepared_groups.py`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.commit.commit_queue import MAX_GROUP, Turn
from omnigraph.commit.footprint import UNKNOWN_FOOTPRINT, Footprint, TypeKey
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, Snapshot
from omnigraph.commit.prepared_groups import (
    MAX_KEYS,
    FoundGroup,
    LeftGroup,
    PreparedChange,
    PreparedGroup,
    PreparedGroups,
    PreparedRows,
)
from omnigraph.commit.protection import BranchProtected, check_publish, rules_for
from omnigraph.commit.publish import find_published, publish_group
from omnigraph.commit.rebase import footprints_since
from omnigraph.commit.snapshot import head_snapshot, recent_snapshot
from omnigraph.commit.staged_commit import StagedCommit, StagedDataset
from omnigraph.dataset_view import StagedView
from omnigraph.errors import (
    CleanupBegan,
    Contention,
    ExpectedVersionMismatch,
    OmniError,
    OutcomeUnknown,
    SchemaMoved,
    StorageUnavailable,
)
from omnigraph.storage.compaction import compact_small_fragments
from omnigraph.storage.layout import data_file_names, fragment_file_names
from omnigraph.storage.row_lookup import ROW_ADDRESS
from omnigraph.storage.small_fragments import KEY_COLUMNS, put_key_columns
from omnigraph.storage.staged_writes import (
    fragment_from_json,
    fragment_to_json,
    replace_rows,
    write_new_fragments,
)
from omnigraph.storage.version_diff import find_rows
from omnigraph.types import Scalar
from omnigraph.write.change_set import INPUT_POSITION, ChangeSet, RowSchema, TypeChange
from omnigraph.write.committed_state import CommittedState, ScanRequired
from omnigraph.write.footprints import ChangeKeys, keys_of
from omnigraph.write.resolved_change import ResolvedChange
from omnigraph.write.staging import count_changes
from omnigraph.write.transaction import (
    PendingChange,
    QueuedGroupChange,
    apply_alone,
    commit_queue,
)
from omnigraph.write.validator import validate
from omnigraph.write.violations import ValidationFailed

MAX_SECONDS = 0.05
"""Time after which no further change joins a group."""
MAX_OVERLAPS = 3
"""Changes that rely on others of the group, after which no further change is looked at."""
MAX_ROWS = 1_000
"""Rows of one type above which a change goes alone."""
MAX_BYTES = 1024 * 1024
"""Size of the rows of a change above which it goes alone."""

GATHER_SECONDS = 0.006
"""How long a process that has its turn waits for a group of another one."""
SECONDS_FOR_OTHERS = 30.0
"""Least time for which a process waits for the one that publishes its group."""

_RETRYABLE = (CleanupBegan, ExpectedVersionMismatch, SchemaMoved)

_Chosen: TypeAlias = tuple[QueuedGroupChange, ChangeSet, ChangeKeys]
"""A change, what it writes, and its keys."""
_NumberedImage: TypeAlias = tuple[int, ResolvedChange]
"""The change of a type by a member, with the number of the member."""
_AddedRows: TypeAlias = tuple[Sequence[tuple[int, int]], Sequence[Any], Sequence[int]]
"""Numbers of members with those of their rows, the fragments, and addresses of replaced rows."""
_Fragments: TypeAlias = dict[tuple[str, ...], list[Any]]
"""Fragments that were written, by the type and the commits whose rows they hold."""


def apply_changes(manifest: Manifest, change: PendingChange) -> Commit | None:
    """Publish a change and return its commit; None if nothing changes.

    Raises:
        Contention: its timeout has passed while it waited for other writers.
    """
    if change.small:
        branch = manifest.known_branch(change.request.branch)
        queue = commit_queue(manifest, branch.lineage_id)
        queued = QueuedGroupChange(change)
        queue.run(queued, partial(_lead, manifest, branch.name))
        if not queued.is_too_large:
            return queued.outcome()
    return apply_alone(manifest, change)


@dataclass(slots=True)
class _Member:
    """A change of the group with its part of the result of validation."""

    queued: QueuedGroupChange
    changes: ChangeSet
    keys: ChangeKeys
    images: Mapping[str, ResolvedChange]
    relocated: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Where a newer state has the replaced rows of a type, if that is not where they were read."""

    @property
    def change(self) -> PendingChange:
        return self.queued.change

    def addresses(self, table_key: str) -> Sequence[int]:
        """Return where the rows of a type are that the change replaces."""
        if table_key in self.relocated:
            return self.relocated[table_key]
        found: list[int] = self.images[table_key].replaced[ROW_ADDRESS].to_pylist()
        return found


def _lead(
    manifest: Manifest, branch: str, waiting: Sequence[QueuedGroupChange], turn: Turn
) -> None:
    """Publish a group of the waiting changes; those that do not fit in stay undone."""
    waiting = _settle(manifest, branch, waiting)
    try:
        seen = [queued.change.seen for queued in waiting]
        snapshot = recent_snapshot(manifest, seen) or head_snapshot(manifest, branch)
        group = _Group(manifest, snapshot)
        group.add_all(waiting)
        if not group.members:
            return
        if not turn.is_held:
            group.write_rows()
            if not group.wait_for(turn):
                return
            group = group.moved(head_snapshot(manifest, branch))
        if turn.is_held and turn.groups is not None:
            group.take_prepared(turn.groups)
    except OmniError as error:
        for queued in waiting:
            if not queued.done:
                queued.fail(error)
        return
    if group.members:
        group.publish()


def _settle(
    manifest: Manifest, branch: str, waiting: Sequence[QueuedGroupChange]
) -> Sequence[QueuedGroupChange]:
    """Look up the changes that an earlier leader may have published."""
    doubtful = [queued for queued in waiting if queued.in_doubt]
    if doubtful:
        _, state = manifest.head_state(branch)
        for queued in doubtful:
            published = find_published(state, [queued.change.commit_id])
            if published is not None:
                queued.succeed(published[0])
            queued.in_doubt = False
    return [queued for queued in waiting if not queued.done]


class _Group:
    """The changes that one swap publishes."""

    def __init__(self, manifest: Manifest, snapshot: Snapshot) -> None:
        self.manifest = manifest
        self.snapshot = snapshot
        self.members: list[_Member] = []
        self._written: set[int] = set()
        self._fragments: _Fragments = {}
        self._taken: list[FoundGroup] = []

    # --- preparing -----------------------------------------------------------------------------

    def add_all(self, waiting: Sequence[QueuedGroupChange]) -> None:
        """Prepare changes in order and add those that fit in."""
        until, overlaps = time.monotonic() + MAX_SECONDS, 0
        drafts: list[tuple[QueuedGroupChange, ChangeSet, CommittedState]] = []
        for queued in waiting:
            if (drafts and time.monotonic() > until) or overlaps >= MAX_OVERLAPS:
                break
            if (drafts or self.members) and queued.change.request.if_commit is not None:
                break  # its parent is the head, so it is the first of a group
            draft = self._draft(queued)
            if draft is not None:
                drafts.append((queued, *draft))
        together = [draft for draft in drafts if _only_adds(draft[1])]
        joint = self._validate_together(together)
        for queued, changes, committed in drafts:
            member = joint.get(id(queued))
            if member is None:
                member = self._validate(queued, changes, committed)
            if member is not None and not self._join(member):
                overlaps += 1
                if overlaps >= MAX_OVERLAPS:
                    break

    def _draft(self, queued: QueuedGroupChange) -> tuple[ChangeSet, CommittedState] | None:
        """Return the change of the state; None if its outcome is known or it goes alone."""
        committed = CommittedState(self.manifest, self.snapshot, scans=False)
        try:
            queued.take_up()
            queued.change.check_head(self.snapshot)
            check_publish(self.snapshot.branch, self.snapshot.head, queued.change.request.permit)
            changes = queued.context.run(queued.change.changes, committed)
        except ScanRequired:
            self._dismiss(queued)
            return None
        except Exception as error:  # noqa: BLE001 - the caller of the change gets it
            queued.fail(error)
            return None
        if changes is None:
            queued.succeed(None)
            return None
        if not all(_fits(change) for change in changes.types.values()):
            self._dismiss(queued)
            return None
        return changes, committed

    def _dismiss(self, queued: QueuedGroupChange) -> None:
        queued.is_too_large = True
        queued.succeed(None)

    def _validate_together(
        self, drafts: Sequence[tuple[QueuedGroupChange, ChangeSet, CommittedState]]
    ) -> dict[int, _Member]:
        """Validate changes that only add rows as one; none if there is any violation."""
        committed = CommittedState(self.manifest, self.snapshot)
        merged, chosen = ChangeSet(), list[_Chosen]()
        written, required = set[int](), set[int]()
        for queued, changes, read in drafts:
            keys = keys_of(_as_images(changes), committed, ())
            keys.add_ids_read(read)
            if written.isdisjoint(keys.required) and required.isdisjoint(keys.written):
                written |= keys.written
                required |= keys.required
                chosen.append((queued, changes, keys))
                for change in changes.types.values():
                    merged.of(change.shape).batches.extend(change.batches)
        if len(chosen) < 2:
            return {}
        try:
            images = validate(merged, committed)
        except ValidationFailed:
            return {}
        parts, members = _Parts(images), {}
        for queued, changes, keys in chosen:
            part = parts.of(changes)
            if any(image.replaced.num_rows for image in part.values()):
                # What it looked up, also rows that are left out because they change nothing.
                required, types_read = keys.required, keys.types_read
                keys = ChangeKeys(committed, required=set(required), types_read=set(types_read))
                for image in part.values():
                    keys.add(image)
            members[id(queued)] = _Member(queued, changes, keys, part)
        return members

    def _validate(
        self, queued: QueuedGroupChange, changes: ChangeSet, committed: CommittedState
    ) -> _Member | None:
        try:
            images = queued.context.run(validate, changes, committed)
            return _Member(queued, changes, keys_of(images, committed, ()), images)
        except ScanRequired:
            self._dismiss(queued)
        except Exception as error:  # noqa: BLE001 - the caller of the change gets it
            queued.fail(error)
        return None

    def _join(self, member: _Member) -> bool:
        """Add a member unless it relies on what the members before it write."""
        if not member.images and not member.change.always:
            member.queued.succeed(None)
            return True
        if not self._written.isdisjoint(member.keys.required):
            return False
        self._written |= member.keys.written
        self.members.append(member)
        return True

    # --- preparing before the turn -------------------------------------------------------------

    def write_rows(self) -> None:
        """Write the rows of the members, so that only versions are left for the turn."""
        for table_key, images in self._images_by_type():
            entry = self.snapshot.entry(table_key)
            with self.manifest.reading(table_key, entry) as handle:
                for run in _runs(images):
                    new = self._fragments_of(table_key, run, handle)
                    names = fragment_file_names(new)
                    self.manifest.datasets.finish_files(entry.path(table_key), names)

    def moved(self, now: Snapshot) -> _Group:
        """Return the group on a newer state; what relies on the commits since is prepared again."""
        before = self.snapshot
        if (now.lineage_id, now.manifest_version) == (before.lineage_id, before.manifest_version):
            return self
        newer = [UNKNOWN_FOOTPRINT]
        has_same_files = now.head.last_cleanup == before.head.last_cleanup
        if has_same_files and (now.lineage_id, now.head.schema_hash) == (
            before.lineage_id,
            before.head.schema_hash,
        ):
            newer = footprints_since(
                self.manifest.lineage(now.lineage_id).state(), before.manifest_version
            )
        group = _Group(self.manifest, now)
        late: list[QueuedGroupChange] = []
        for member in self.members:
            required = member.keys.requirements()
            overlaps = any(footprint.overlaps(required) for footprint in newer)
            if (
                overlaps
                or member.change.request.if_commit is not None
                or not group._take_over(member, before)
            ):
                late.append(member.queued)
        if has_same_files:
            # What is prepared again has other rows, and a cleanup removes files of no version.
            group.keep_fragments(self._fragments)
        group.add_all(late)
        return group

    def keep_fragments(self, written: _Fragments) -> None:
        """Use fragments whose rows are all of members that the group has by now."""
        ids = {member.change.commit_id for member in self.members}
        self._fragments = {key: new for key, new in written.items() if ids.issuperset(key[1:])}

    def _take_over(self, member: _Member, before: Snapshot) -> bool:
        """Add a member that was prepared on an older state, if its rows can be found again."""
        for table_key, image in member.images.items():
            entries = before.entry(table_key), self.snapshot.entry(table_key)
            if entries[0].state == entries[1].state:
                continue
            with (
                self.manifest.reading(table_key, entries[0]) as old,
                self.manifest.reading(table_key, entries[1]) as new,
            ):
                if not old.schema.equals(new.schema, check_metadata=True):
                    return False
                if image.replaced.num_rows:
                    addresses = image.replaced[ROW_ADDRESS].to_numpy()
                    found = find_rows(addresses, old, new)
                    if found is None:
                        return False
                    member.relocated = {**member.relocated, table_key: found.tolist()}
        return self._join(member)

    # --- groups of other processes --------------------------------------------------------------

    def wait_for(self, turn: Turn) -> bool:
        """Wait for the turn; return False if its outcome is known, by another process."""
        prepared = self._prepared() if turn.groups is not None else None
        if turn.groups is None or prepared is None:
            turn.wait()
            return True
        with turn.groups.left(prepared) as left:
            if left is None:
                turn.wait()
                return True
            try:
                turn.wait(left.is_published)
            except BaseException:
                if not left.withdraw():  # its outcome is looked up later
                    turn.wait(seconds=SECONDS_FOR_OTHERS)
                raise
            return left.withdraw() or not self._is_settled(turn, left)

    def _is_settled(self, turn: Turn, left: LeftGroup) -> bool:
        """Return whether the outcome of a group is known that another process has taken."""
        for member in self.members:
            member.queued.in_doubt = True
        try:
            if not turn.is_held and not left.is_published():
                turn.wait(left.is_published, seconds=SECONDS_FOR_OTHERS)
            if not self._find_published() and not turn.is_held:
                turn.wait(seconds=SECONDS_FOR_OTHERS)
            if self._find_published():
                return True
        except StorageUnavailable as error:
            self._fail_unknown(error)
            return True
        if not turn.is_held:
            self._fail_unknown(None)
            return True
        for member in self.members:
            member.queued.in_doubt = False
        return False

    def _find_published(self) -> bool:
        """Return whether the members are published; then they have their commits."""
        _, state = self.manifest.head_state(self.snapshot.branch)
        ids = [member.change.commit_id for member in self.members]
        commits = find_published(state, ids, self.snapshot.manifest_version)
        for member, commit in zip(self.members, commits or (), strict=commits is not None):
            member.queued.succeed(commit)
        return commits is not None

    def _fail_unknown(self, cause: BaseException | None) -> None:
        for member in self.members:
            unknown = OutcomeUnknown(member.change.commit_id)
            unknown.__cause__ = cause
            member.queued.fail(unknown)

    def _prepared(self) -> PreparedGroup | None:
        """Return the group for another process; None if that may not publish it."""
        head, branch = self.snapshot.head, self.snapshot.branch
        changes = []
        for member in self.members:
            request, keys = member.change.request, member.keys
            if (
                request.if_commit is not None
                or request.permit.proposal is not None
                or rules_for(branch, head, request.permit)
                or keys.is_whole
                or len(keys.written) > MAX_KEYS
                or not member.images
                or any(i.replaced.num_rows or not i.rows.num_rows for i in member.images.values())
            ):
                return None
            changes.append(
                PreparedChange(
                    id=member.change.commit_id,
                    operation=request.operation,
                    actor=request.actor,
                    message=request.message,
                    counts=count_changes(member.images),
                    footprint=keys.footprint(),
                    requirements=keys.requirements(),
                    types_read=tuple(sorted(keys.committed.types_read)),
                )
            )
        return PreparedGroup(
            lineage_id=self.snapshot.lineage_id,
            version=self.snapshot.manifest_version,
            schema_hash=head.schema_hash,
            last_cleanup=head.last_cleanup,
            durability=self.manifest.location.durability,
            changes=tuple(changes),
            rows=tuple(self._prepared_rows(*typed) for typed in self._images_by_type()),
        )

    def _prepared_rows(self, table_key: str, images: Sequence[_NumberedImage]) -> PreparedRows:
        with self.manifest.reading(table_key, self.snapshot.entry(table_key)) as handle:
            new = self._fragments_of(table_key, images, handle)
            schema = _fingerprint(handle)
        rows = pa.concat_tables([image.rows for _, image in images])
        files = [name for fragment in new for name in data_file_names(fragment.files)]
        names = [name for name in KEY_COLUMNS if name in rows.column_names]
        columns = {name: rows[name].to_pylist() for name in names}
        return PreparedRows(
            table_key=table_key,
            schema=schema,
            rows=tuple((number, image.rows.num_rows) for number, image in images),
            fragments=tuple(fragment_to_json(fragment) for fragment in new),
            keys={files[0]: columns} if len(files) == 1 else {},
        )

    def take_prepared(self, groups: PreparedGroups) -> None:
        """Take the groups that waiting processes have left and that can be published with this.

        Where other processes write, one is about to leave its group: waiting for it costs less than
        a swap of its own.
        """
        lineage = self.manifest.lineage(self.snapshot.lineage_id)
        if not self.members or rules_for(self.snapshot.branch, self.snapshot.head):
            return
        until = time.monotonic() + GATHER_SECONDS
        while not self._take_found(groups) and lineage.is_contended and time.monotonic() < until:
            time.sleep(GATHER_SECONDS / 10)

    def _take_found(self, groups: PreparedGroups) -> bool:
        """Take what can be published of the groups that are there; return whether any is."""
        lineage, is_any = self.manifest.lineage(self.snapshot.lineage_id), False
        count, newer = len(self.members), dict[int, list[Footprint]]()
        for found in groups.find():
            lineage.expect_other_writers()
            is_any, group = True, found.group
            if count + len(group.changes) > MAX_GROUP:
                break
            can_publish = False
            if group.version not in newer:
                newer[group.version] = footprints_since(lineage.state(), group.version)
            with suppress(OmniError):  # its owner gets the error
                can_publish = self._can_publish(group, newer[group.version])
            if can_publish and found.take():
                self._taken.append(found)
                count += len(group.changes)
                for change in group.changes:
                    self._written |= change.written
                for rows in group.rows:
                    self._cache_keys(rows)
        return is_any

    def _can_publish(self, group: PreparedGroup, newer: Sequence[Footprint]) -> bool:
        head = self.snapshot.head
        if (
            # The branch may have been deleted and created again while the others waited.
            group.lineage_id != self.snapshot.lineage_id
            or group.version > self.snapshot.manifest_version
            or (group.schema_hash, group.last_cleanup) != (head.schema_hash, head.last_cleanup)
            or group.durability != self.manifest.location.durability
        ):
            return False
        for change in group.changes:
            required = change.requirements
            if not self._written.isdisjoint(required.keys) or any(
                footprint.overlaps(required) for footprint in newer
            ):
                return False
        for rows in group.rows:
            with self.manifest.reading(rows.table_key, self.snapshot.entry(rows.table_key)) as now:
                if _fingerprint(now) != rows.schema:
                    return False
        return True

    def _cache_keys(self, rows: PreparedRows) -> None:
        path = self.snapshot.entry(rows.table_key).path(rows.table_key)
        uri = self.manifest.datasets.location.child(path)
        for file, columns in rows.keys.items():
            table = pa.table({name: pa.array(v, pa.string()) for name, v in columns.items()})
            put_key_columns(uri, file, table)

    # --- staging -------------------------------------------------------------------------------

    def publish(self) -> None:
        """Stage and publish the members; a lost race leaves them undone."""
        try:
            staged = self._stage_all()
            lineage = self.manifest.lineage(self.snapshot.lineage_id)
            version = self.snapshot.manifest_version
            commits = publish_group(lineage, self.snapshot.branch, staged, version)
        except _RETRYABLE as error:
            self._refuse_overlapping(error)
        except OutcomeUnknown as error:
            self._fail_unknown(error)
        except (BranchProtected, Contention):
            return  # they are staged again, until their deadlines, or refused one by one
        except Exception as error:  # noqa: BLE001 - every caller gets it
            for member in self.members:
                member.queued.fail(error)
        else:
            for member, commit in zip(self.members, commits, strict=not self._taken):
                member.queued.succeed(commit)
            for found in self._taken:
                found.report_published()

    def _refuse_overlapping(self, error: OmniError) -> None:
        """After a lost race, refuse changes that may not be prepared again on the newer state."""
        state = self.manifest.lineage(self.snapshot.lineage_id).state()
        newer = footprints_since(state, self.snapshot.manifest_version)
        for member in self.members:
            required = member.keys.requirements()
            overlaps = any(footprint.overlaps(required) for footprint in newer)
            if overlaps and not member.change.again():
                member.queued.fail(error)

    def _stage_all(self) -> list[StagedCommit]:
        """Stage the group; without those of other processes if that fails."""
        try:
            return self._stage()
        except Exception:
            if not self._taken:
                raise
            self._taken = []
            return self._stage()

    def _stage(self) -> list[StagedCommit]:
        taken = [change for found in self._taken for change in found.group.changes]
        datasets: list[dict[str, StagedDataset]] = [{} for _ in (*self.members, *taken)]
        own, others = dict(self._images_by_type()), self._taken_by_type()
        for table_key in dict.fromkeys((*own, *others)):
            added = others.get(table_key, ())
            for number, dataset in self._stage_type(table_key, own.get(table_key, ()), added):
                datasets[number][table_key] = dataset
        head = self.snapshot.head
        staged = [
            StagedCommit(
                id=member.change.commit_id,
                operation=member.change.request.operation,
                datasets=tuple(datasets[number].values()),
                read_schema=head.schema_hash,
                reads=self._reads(member.keys.committed.types_read, datasets),
                actor=member.change.request.actor,
                message=member.change.request.message,
                counts=count_changes(member.images),
                if_commit=member.change.request.if_commit,
                began=head.last_cleanup,
                footprint=member.keys.footprint(),
                requirements=member.keys.requirements(),
                permit=member.change.request.permit,
            )
            for number, member in enumerate(self.members)
        ]
        return staged + [
            StagedCommit(
                id=change.id,
                operation=change.operation,
                datasets=tuple(datasets[number].values()),
                read_schema=head.schema_hash,
                reads=self._reads(change.types_read, datasets),
                actor=change.actor,
                message=change.message,
                counts=change.counts,
                began=head.last_cleanup,
                footprint=change.footprint,
                requirements=change.requirements,
            )
            for number, change in enumerate(taken, len(self.members))
        ]

    def _taken_by_type(self) -> dict[str, list[_AddedRows]]:
        """Return the rows of groups of other processes; their changes follow the members."""
        added: dict[str, list[_AddedRows]] = {}
        first = len(self.members)
        for found in self._taken:
            for rows in found.group.rows:
                numbers = [(first + number, count) for number, count in rows.rows]
                fragments = [fragment_from_json(fragment) for fragment in rows.fragments]
                added.setdefault(rows.table_key, []).append((numbers, fragments, ()))
            first += len(found.group.changes)
        return added

    def _images_by_type(self) -> Iterator[tuple[str, list[_NumberedImage]]]:
        """Yield the changes of each type, with the numbers of their members."""
        for table_key in dict.fromkeys(key for member in self.members for key in member.images):
            yield (
                table_key,
                [
                    (number, member.images[table_key])
                    for number, member in enumerate(self.members)
                    if table_key in member.images
                ],
            )

    def _reads(
        self, types_read: Iterable[str], datasets: Sequence[Mapping[str, StagedDataset]]
    ) -> dict[str, tuple[TypeKey, int]]:
        changed = {key for staged in datasets for key in staged}
        entries = {key: self.snapshot.entry(key) for key in types_read}
        return {key: (e.key, e.physical) for key, e in entries.items() if key not in changed}

    def _fragments_of(
        self,
        table_key: str,
        run: Sequence[_NumberedImage],
        handle: Any,  # noqa: ANN401 - a Lance handle
    ) -> list[Any]:
        """Write the rows that a run adds, unless they were written before."""
        key = (table_key, *(self.members[number].change.commit_id for number, _ in run))
        if key not in self._fragments:
            rows = pa.concat_tables([image.rows.drop_columns(INPUT_POSITION) for _, image in run])
            view = StagedView(run[0][1].shape.type, handle)
            self._fragments[key] = (
                write_new_fragments(view.to_stored(rows), handle) if rows.num_rows else []
            )
        return self._fragments[key]

    def _added_rows(
        self,
        table_key: str,
        images: Sequence[_NumberedImage],
        handle: Any,  # noqa: ANN401 - a Lance handle
    ) -> Iterator[_AddedRows]:
        """Yield what the members change of a type, one run after the other."""
        for run in _runs(images):
            new = self._fragments_of(table_key, run, handle)
            addresses = self.members[run[0][0]].addresses(table_key)
            yield [(number, image.rows.num_rows) for number, image in run], new, addresses

    def _stage_type(
        self,
        table_key: str,
        images: Sequence[_NumberedImage],
        others: Sequence[_AddedRows] = (),
    ) -> Iterator[tuple[int, StagedDataset]]:
        """Stage the changes of one type as a chain of versions, those of other processes last."""
        entry = self.snapshot.entry(table_key)
        datasets, path = self.manifest.datasets, entry.path(table_key)
        expected, rows = entry.physical, entry.rows
        with self.manifest.reading(table_key, entry, to_change=True) as handle:
            staged: list[tuple[int, StagedDataset]] = []
            for run, new, addresses in (*self._added_rows(table_key, images, handle), *others):
                before = expected
                handle = replace_rows(handle, addresses, new)
                left = sum(count for _, count in run)
                rows -= len(addresses)
                for number, count in run:
                    left -= count
                    rows += count
                    versions = (expected, int(handle.version))
                    dataset = StagedDataset(table_key, *entry.key, *versions, rows, excluded=left)
                    staged.append((number, dataset))
                    expected = int(handle.version)
                datasets.keep(path, handle)
                number, last = staged[-1]
                files = datasets.new_checksums(path, before, int(handle.version))
                staged[-1] = (number, replace(last, checksums=files))
            compacted = compact_small_fragments(handle)
        if compacted is not handle:
            datasets.keep(path, compacted)
            number, last = staged[-1]
            version = int(compacted.version)
            files = datasets.new_checksums(path, int(handle.version), version)
            staged[-1] = (
                number,
                replace(last, physical=version, checksums={**last.checksums, **files}),
            )
        self.manifest.datasets.observe(f"staged {table_key.partition(':')[0]}")
        yield from staged


def _runs(images: Sequence[_NumberedImage]) -> Iterator[list[_NumberedImage]]:
    """Yield the changes of a type in runs that share a version."""
    run: list[_NumberedImage] = []
    for number, image in images:
        if image.replaced.num_rows:
            if run:
                yield run
            run = []
            yield [(number, image)]
        else:
            run.append((number, image))
    if run:
        yield run


def _fingerprint(handle: Any) -> str:  # noqa: ANN401 - a Lance handle
    """Return what identifies the columns of a version, with their metadata."""
    return hashlib.sha256(handle.schema.serialize()).hexdigest()


def _fits(change: TypeChange) -> bool:
    """Return whether a change of a type can be part of a group."""
    rows = sum(batch.rows.num_rows for batch in change.batches) + len(change.deleted)
    size = sum(batch.rows.nbytes for batch in change.batches)
    return (
        rows <= MAX_ROWS
        and size <= MAX_BYTES
        and not change.replace
        and change.adopted is None
        and not change.shared
        and change.vectors_from is None
        and not _has_heavy_properties(change.shape)
    )


def _has_heavy_properties(shape: RowSchema) -> bool:
    heavy = (Scalar.VECTOR, Scalar.BLOB)
    return any(p.type.scalar in heavy for p in shape.properties.values())


def _only_adds(changes: ChangeSet) -> bool:
    """Return whether a change consists of whole rows and nothing else."""
    return not changes.findings and all(
        not change.deleted
        and not change.strict
        and not any(batch.given for batch in change.batches)
        for change in changes.types.values()
    )


def _as_images(changes: ChangeSet) -> dict[str, ResolvedChange]:
    """Return rows as images, for the keys of a change that only adds."""
    images = {}
    for key, change in changes.types.items():
        if change.is_empty:
            continue
        rows = pa.concat_tables(
            [batch.rows.select(change.shape.schema.names) for batch in change.batches]
        )
        none = rows.slice(0, 0)
        images[key] = ResolvedChange(change, (), rows, none, pa.array([], pa.string()))
    return images


class _Parts:
    """The images of changes that were validated together, split by their IDs."""

    def __init__(self, images: Mapping[str, ResolvedChange]) -> None:
        self._images = images
        self._rows = {key: _positions(image.rows) for key, image in images.items()}
        self._replaced = {key: _positions(image.replaced) for key, image in images.items()}

    def of(self, changes: ChangeSet) -> dict[str, ResolvedChange]:
        """Return the part of one change."""
        parts = {}
        for key, change in changes.types.items():
            image = self._images.get(key)
            if image is None:
                continue
            ids = {id_ for batch in change.batches for id_ in batch.rows["id"].to_pylist()}
            rows = self._take(image.rows, self._rows[key], ids)
            replaced = self._take(image.replaced, self._replaced[key], ids)
            if rows.num_rows or replaced.num_rows:
                parts[key] = replace(image, change=change, batches=(), rows=rows, replaced=replaced)
        return parts

    @staticmethod
    def _take(table: pa.Table, positions: Mapping[str, int], ids: set[str]) -> pa.Table:
        places = sorted(positions[id_] for id_ in ids if id_ in positions)
        return table.take(pa.array(places, pa.int64()))


def _positions(rows: pa.Table) -> dict[str, int]:
    return {id_: place for place, id_ in enumerate(rows["id"].to_pylist())}
