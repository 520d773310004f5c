/**
 * Addresses. A view is the part behind `#`, which is never sent to a server:
 * `#/data/Port/BGO?branch=main`. The parameters that name a state follow the reader from view to
 * view; all others belong to one.
 */
const STICKY = ['graph', 'branch', 'at'] as const;

export type Params = Record<string, string | number | null | undefined | string[]>;

class Router {
  path = $state<string[]>([]);
  params = $state.raw(new URLSearchParams());

  constructor() {
    this.read();
    addEventListener('hashchange', () => this.read());
  }

  private read(): void {
    const [path = '', query = ''] = splitOnce(location.hash.replace(/^#\/?/, ''), '?');
    this.path = path.split('/').filter(Boolean).map(decode);
    this.params = new URLSearchParams(query);
  }

  get page(): string {
    return this.path[0] ?? 'overview';
  }

  param(name: string): string | null {
    return this.params.get(name);
  }

  /** Return the address of a view; parameters that name the state are kept unless given. */
  href(path: string[], params: Params = {}): string {
    const kept: Params = {};
    for (const name of STICKY) kept[name] = this.params.get(name);
    return address(path, { ...kept, ...params });
  }

  /** Return the address of the same view with some parameters changed; null removes one. */
  with(params: Params): string {
    const all: Params = {};
    for (const name of this.params.keys()) all[name] = this.params.getAll(name);
    return address(this.path, { ...all, ...params });
  }

  go(href: string, { replace = false } = {}): void {
    if (href === location.hash) return;
    if (replace) history.replaceState(null, '', href);
    else history.pushState(null, '', href);
    this.read();
  }
}

function address(path: string[], params: Params): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== '') query.append(name, String(one));
    }
  }
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

function splitOnce(text: string, sign: string): [string, string] {
  const place = text.indexOf(sign);
  return place < 0 ? [text, ''] : [text.slice(0, place), text.slice(place + 1)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const router = new Router();
