/** Keyboard shortcuts of the page that is open; the application dispatches them and lists them. */
export interface Shortcut { key: string; what: string; act: () => void }

class Keys {
  list = $state.raw<Shortcut[]>([]);

  /** Replace the shortcuts of the page; the result removes them, as an effect does. */
  use(list: Shortcut[]): () => void {
    this.list = list;
    return () => { if (this.list === list) this.list = []; };
  }

  dispatch(key: string): boolean {
    const chosen = this.list.find((one) => one.key === key);
    chosen?.act();
    return chosen !== undefined;
  }
}

export const keys = new Keys();

/** Move the focus to the next or the previous of some links or buttons. */
export function step(selector: string, by: 1 | -1): void {
  const all = [...document.querySelectorAll<HTMLElement>(selector)];
  const at = all.findIndex((one) => one === document.activeElement);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}
