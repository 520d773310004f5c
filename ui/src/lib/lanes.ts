/** Lanes of the commit graph: where each commit is drawn, and which lines lead to its parents. */
import type { Commit } from './wire';

export interface Line { from: number; to: number; column: number; starts: boolean }
export interface Lane { commit: Commit; column: number; continues: boolean; lines: Line[] }

/** Place commits, the newest first; a line runs from each row to the next one. */
export function lanes(commits: Commit[]): Lane[] {
  let open: (string | null)[] = [];
  return commits.map((commit) => {
    let column = open.indexOf(commit.graph_commit_id);
    const continues = column >= 0;
    if (!continues) column = free(open);
    const before = open.slice();
    open = open.map((id) => (id === commit.graph_commit_id ? null : id));
    const lines: Lane['lines'] = [];
    before.forEach((id, place) => {
      if (id !== null && id !== commit.graph_commit_id) lines.push({ from: place, to: place, column: place, starts: false });
    });
    const parents = [commit.parent_commit_id, commit.merged_parent_commit_id].filter((id): id is string => id !== null);
    parents.forEach((parent, nth) => {
      let to = open.indexOf(parent);
      if (to < 0) {
        to = nth === 0 && open[column] == null ? column : free(open);
        open[to] = parent;
      }
      lines.push({ from: column, to, column: Math.max(column, to), starts: true });
    });
    while (open.length && open.at(-1) === null) open.pop();
    return { commit, column, continues, lines };
  });
}

function free(open: (string | null)[]): number {
  const place = open.indexOf(null);
  if (place >= 0) return place;
  open.push(null);
  return open.length - 1;
}
