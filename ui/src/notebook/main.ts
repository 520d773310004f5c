/** The canvas of Studio as a widget of notebooks: one module, by the conventions of anywidget. */
import { mount, unmount } from 'svelte';
import GraphCanvas from '../components/GraphCanvas.svelte';
import type { DrawnEdge, DrawnNode } from '../lib/canvas';
import base from '../styles/base.css?inline';
import { pageTheme } from './theme';

interface Node { type: string; id: string; label: string | null }
interface Edge { type: string; src_type: string; src: string; dst_type: string; dst: string }
interface Model { get(name: 'nodes'): Node[]; get(name: 'edges'): Edge[] }

const key = (type: string, id: string): string => `${type}\n${id}`;
const FRAME = ':host { display: block; color: var(--ink); font: var(--t3) / 1.5 var(--font); border: 1px solid var(--line); border-radius: var(--radius); overflow: hidden; max-width: 1100px; }';

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const host = document.createElement('div');
  const root = host.attachShadow({ mode: 'open' });
  // Studio states its colours for the root of a page: here that is the host.
  root.append(Object.assign(document.createElement('style'), { textContent: base.replaceAll(/:root(\[[^\]]+\])?/g, (_, state?: string) => (state ? `:host(${state})` : ':host')) + FRAME }));
  const setTheme = (): void => {
    const theme = pageTheme();
    if (host.dataset.theme === (theme ?? undefined)) return;
    if (theme) host.dataset.theme = theme;
    else delete host.dataset.theme;
    dispatchEvent(new Event('themechange'));
  };
  setTheme();
  el.append(host);
  const nodes: DrawnNode[] = model.get('nodes').map((node) => ({ ...node, key: key(node.type, node.id) }));
  const edges: DrawnEdge[] = model.get('edges').map((edge, index) => ({ key: String(index), type: edge.type, source: key(edge.src_type, edge.src), target: key(edge.dst_type, edge.dst) }));
  const canvas = mount(GraphCanvas, { target: root, props: { nodes, edges, label: 'Graph' } });
  const watch = new MutationObserver(setTheme);
  for (const element of [document.documentElement, document.body]) watch.observe(element, { attributes: true });
  return () => {
    watch.disconnect();
    void unmount(canvas);
    host.remove();
  };
}

export default { render };
