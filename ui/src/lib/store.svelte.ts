import { ApiError, GraphClient, listGraphs, session, whenUnauthorized, type State } from './api';
import { router } from './router.svelte';
import type { SchemaModel, SchemaType, Session } from './wire';

type Phase = 'starting' | 'signed-out' | 'choose-graph' | 'ready' | 'failed';

/** Who is signed in, which graph is shown, and which state of it the address names. */
class Store {
  phase = $state<Phase>('starting');
  failure = $state.raw<unknown>(null);
  session = $state.raw<Session | null>(null);
  graphs = $state.raw<string[]>([]);
  model = $state.raw<SchemaModel | null>(null);
  modelError = $state.raw<unknown>(null);
  /** Counts up when data was changed here, so that views read again. */
  revision = $state(0);
  readonly graphId = $derived(router.param('graph') ?? (this.graphs.length === 1 ? this.graphs[0]! : null));
  readonly graph = $derived(this.graphId === null ? null : new GraphClient(this.graphId));
  readonly branch = $derived(router.param('branch') ?? 'main');
  readonly at = $derived(router.param('at'));
  readonly state = $derived<State>(this.at === null ? { branch: this.branch } : { snapshot: this.at });
  /** The name of the state for operations that take one word for any of them. */
  readonly target = $derived(this.at ?? this.branch);
  readonly types = $derived(new Map((this.model?.types ?? []).map((type) => [`${type.kind}:${type.name}`, type])));

  async start(): Promise<void> {
    whenUnauthorized(() => (this.phase = 'signed-out'));
    const token = takeToken();
    try {
      this.session = token === null ? await session.get() : await session.signIn(token);
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        this.failure = token === null ? null : error;
        this.phase = 'signed-out';
      } else {
        this.failure = error;
        this.phase = 'failed';
      }
      return;
    }
    await this.findGraphs();
  }

  async signIn(token: string): Promise<void> {
    this.session = await session.signIn(token);
    this.failure = null;
    await this.findGraphs();
  }

  async signOut(): Promise<void> {
    await session.signOut();
    this.session = null;
    this.model = null;
    this.graphs = [];
    this.failure = null;
    this.phase = 'signed-out';
  }

  private async findGraphs(): Promise<void> {
    try {
      this.graphs = (await listGraphs()).graphs;
    } catch (error) {
      this.failure = error;
      this.phase = 'failed';
      return;
    }
    this.phase = this.graphId === null ? 'choose-graph' : 'ready';
  }

  chooseGraph(id: string): void {
    router.go(router.href([], { graph: id, branch: null, at: null }));
    this.phase = 'ready';
  }

  async readModel(): Promise<void> {
    const { graph, state } = this;
    if (graph === null) return;
    try {
      const model = await graph.model(state);
      if (graph !== this.graph || state !== this.state) return;
      this.model = model;
      this.modelError = null;
    } catch (error) {
      if (graph === this.graph && state === this.state) {
        this.model = null;
        this.modelError = error;
      }
    }
  }

  type(kind: string, name: string): SchemaType | undefined {
    return this.types.get(`${kind}:${name}`);
  }

  /** Return a node or edge type by name, `edge:` before the name of an edge that a node shares. */
  named(name: string): SchemaType | undefined {
    return this.types.get(name) ?? this.type('node', name) ?? this.type('edge', name);
  }

  refresh(): void {
    this.revision++;
  }
}

/** Return the one-time token of the address, which is removed from it at once. */
function takeToken(): string | null {
  const match = /^#token=([^&]+)/.exec(location.hash);
  if (match === null) return null;
  router.go('#/', { replace: true });
  return decodeURIComponent(match[1]!);
}

export const store = new Store();

const THEME = 'omnigraph.theme';
class Theme {
  choice = $state<'system' | 'light' | 'dark'>('system');
  constructor() {
    const saved = localStorage.getItem(THEME);
    if (saved === 'light' || saved === 'dark') this.set(saved);
  }
  set(choice: 'system' | 'light' | 'dark'): void {
    this.choice = choice;
    if (choice === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    if (choice === 'system') localStorage.removeItem(THEME);
    else localStorage.setItem(THEME, choice);
    dispatchEvent(new Event('themechange'));
  }
  get isDark(): boolean {
    return this.choice === 'dark' || (this.choice === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  }
}
export const theme = new Theme();

/** Something that is read from the server: what it is, whether it is on its way, or why not. */
export class Loaded<T> {
  value = $state.raw<T | null>(null);
  error = $state.raw<unknown>(null);
  busy = $state(true);
  private turn = 0;

  async read(load: () => Promise<T>): Promise<void> {
    const turn = ++this.turn;
    this.busy = true;
    try {
      const value = await load();
      if (turn === this.turn) {
        this.value = value;
        this.error = null;
      }
    } catch (error) {
      if (turn === this.turn) {
        this.error = error;
        this.value = null;
      }
    } finally {
      if (turn === this.turn) this.busy = false;
    }
  }
}
