/** The graph canvas: cytoscape draws, a worker lays out; colours are those of the page. */
import cytoscape, { type Core, type ElementDefinition, type StylesheetJson } from 'cytoscape';
import { cut, visible } from './format';
import { lay, type LayoutRequest } from './layout';
import { startLayout } from './layoutThread';

export interface DrawnNode { key: string; type: string; id: string; label: string | null; state?: 'add' | 'change' | 'remove' | 'focus' | 'context' }
export interface DrawnEdge { key: string; type: string; source: string; target: string; state?: 'add' | 'change' | 'remove' | 'context' }

const SERIES = 8;
const SMALL = 120;
// Cytoscape adds a style element to the page unless there is one of this name already.
const STYLE_ID = '__________cytoscape_stylesheet';

function series(type: string): number {
  let sum = 7;
  for (const sign of type) sum = (sum * 31 + sign.codePointAt(0)!) >>> 0;
  return sum % SERIES;
}

/** Return a colour as the element has it: in a notebook the page knows none of ours. */
function colour(root: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  root.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  // Computed colours may have forms that the canvas library does not parse: draw one pixel.
  const context = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d')!;
  context.fillStyle = value;
  context.fillRect(0, 0, 1, 1);
  const [r, g, b] = context.getImageData(0, 0, 1, 1).data;
  return `rgb(${r},${g},${b})`;
}

function sheet(root: HTMLElement): StylesheetJson {
  const own = (name: string): string => colour(root, name);
  const [ink, mute, line, panel, accent] = ['--ink', '--mute', '--line', '--panel', '--accent'].map(own);
  const states = { add: own('--add'), change: own('--change'), remove: own('--remove') };
  return [
    { selector: 'node', style: { width: 'data(size)', height: 'data(size)', 'background-color': panel, 'border-width': 2.5, 'border-color': mute, label: 'data(label)', color: ink, 'font-size': 11.5, 'font-family': 'Inter Variable, system-ui, sans-serif', 'text-valign': 'bottom', 'text-margin-y': 5, 'text-max-width': '120px', 'text-wrap': 'ellipsis', 'min-zoomed-font-size': 7, 'text-outline-color': panel, 'text-outline-width': 2 } },
    ...Array.from({ length: SERIES }, (_, index) => ({ selector: `node.s${index}`, style: { 'border-color': own(`--series-${index}`) } })),
    { selector: 'edge', style: { width: 1.4, 'line-color': line, 'target-arrow-color': mute, 'target-arrow-shape': 'triangle', 'arrow-scale': 0.75, 'curve-style': 'bezier', label: 'data(label)', color: mute, 'font-size': 9.5, 'font-family': 'Inter Variable, system-ui, sans-serif', 'min-zoomed-font-size': 9, 'text-rotation': 'autorotate', 'text-outline-color': panel, 'text-outline-width': 2 } },
    { selector: 'edge.plain', style: { 'curve-style': 'haystack', 'target-arrow-shape': 'none', label: '' } },
    ...(['add', 'change', 'remove'] as const).flatMap((state) => [
      { selector: `node.${state}`, style: { 'border-color': states[state], 'background-color': own(`--${state}-wash`) } },
      { selector: `edge.${state}`, style: { 'line-color': states[state], 'target-arrow-color': states[state], 'line-style': state === 'remove' ? ('dashed' as const) : ('solid' as const) } },
    ]),
    { selector: 'node.context', style: { 'border-color': line } },
    { selector: 'node.focus', style: { 'background-color': accent, 'border-color': accent } },
    { selector: 'node:selected', style: { 'overlay-color': accent, 'overlay-opacity': 0.18, 'overlay-padding': 6 } },
  ] as StylesheetJson;
}

function draw(root: HTMLElement, onselect: (id: string | null) => void) {
  if (!document.getElementById(STYLE_ID)) {
    const mark = document.createElement('template');
    mark.id = STYLE_ID;
    document.head.append(mark);
  }
  const core = cytoscape({ container: root, style: sheet(root), minZoom: 0.03, maxZoom: 4, hideEdgesOnViewport: true, textureOnViewport: false, pixelRatio: 'auto', boxSelectionEnabled: false });
  core.on('select', 'node', (event) => onselect(event.target.id()));
  core.on('unselect', 'node', () => onselect(null));
  const resize = new ResizeObserver(() => core.resize());
  resize.observe(root);
  return { core, paint: () => core.style(sheet(root)), destroy: () => { resize.disconnect(); core.destroy(); } };
}

interface Waiting { request: LayoutRequest; resolve: (places: Float64Array) => void }
let worker: Worker | null = null;
let threadless = false;
let turn = 0;
const waiting = new Map<number, Waiting>();

/** Lay out in this thread what another one cannot: some pages forbid workers. */
function layOutHere(): void {
  threadless = true;
  for (const { request, resolve } of waiting.values()) resolve(lay(request));
  waiting.clear();
}

function layout(request: LayoutRequest): Promise<Float64Array> {
  return new Promise((resolve) => {
    const mine = ++turn;
    waiting.set(mine, { request, resolve });
    try {
      if (!threadless && worker === null) {
        worker = startLayout();
        worker.onmessage = (event: MessageEvent<{ turn: number; places: Float64Array }>) => {
          waiting.get(event.data.turn)?.resolve(event.data.places);
          waiting.delete(event.data.turn);
        };
        worker.onerror = layOutHere;
      }
    } catch {
      threadless = true;
    }
    if (threadless) layOutHere();
    else worker!.postMessage({ turn: mine, ...request });
  });
}

/** Show nodes and edges; those that were drawn before keep their places. */
async function show(core: Core, graph: { nodes: DrawnNode[]; edges: DrawnEdge[] }): Promise<void> {
  const index = new Map(graph.nodes.map((node, place) => [node.key, place]));
  const edges = graph.edges.filter((edge) => index.has(edge.source) && index.has(edge.target));
  const links = edges.map((edge): [number, number] => [index.get(edge.source)!, index.get(edge.target)!]);
  const degree = new Array<number>(graph.nodes.length).fill(0);
  for (const [one, other] of links) (degree[one]!++, degree[other]!++);
  const before = new Map(core.nodes().map((node) => [node.id(), node.position()]));
  const fixed = graph.nodes.map((node): [number, number] | null => { const at = before.get(node.key); return at ? [at.x, at.y] : null; });
  const aspect = Math.min(4, Math.max(0.5, core.width() / Math.max(1, core.height())));
  const places = await layout({ count: graph.nodes.length, links, fixed, aspect });
  if (core.destroyed()) return;
  const many = graph.nodes.length > SMALL;
  const elements: ElementDefinition[] = [
    ...graph.nodes.map((node, place) => ({
      data: { id: node.key, label: visible(cut(node.label ?? node.id, 40)), size: Math.min(34, 16 + Math.sqrt(degree[place]!) * 3) },
      position: { x: places[place * 2]!, y: places[place * 2 + 1]! },
      classes: [`s${series(node.type)}`, node.state ?? ''].join(' '),
    })),
    ...edges.map((edge) => ({
      data: { id: `edge ${edge.key}`, source: edge.source, target: edge.target, label: many ? '' : visible(cut(edge.type, 40)) },
      classes: [edge.state ?? '', graph.nodes.length > 600 ? 'plain' : ''].join(' '),
    })),
  ];
  core.batch(() => {
    core.elements().remove();
    core.add(elements);
  });
  core.resize();
  core.fit(undefined, 44);
  if (core.zoom() > 1.4) { core.zoom(1.4); core.center(); }
}

export const drawGraph = Object.assign(draw, { show, series });
