import type { Component } from 'svelte';
import Overview from '../pages/Overview.svelte';

export interface Page {
  path: string;
  title: string;
  /** The second key of its shortcut, after `g`. */
  key: string;
  load: () => Promise<{ default: Component }>;
}

/** The pages, in the order of the navigation. All but the first are loaded when they are opened. */
export const pages: Page[] = [
  { path: 'overview', title: 'Overview', key: 'o', load: async () => ({ default: Overview }) },
  { path: 'data', title: 'Data', key: 'd', load: () => import('../pages/Data.svelte') },
  { path: 'query', title: 'Query', key: 'q', load: () => import('../pages/Query.svelte') },
  { path: 'history', title: 'History', key: 'h', load: () => import('../pages/History.svelte') },
  { path: 'compare', title: 'Compare', key: 'c', load: () => import('../pages/Compare.svelte') },
  { path: 'proposals', title: 'Proposals', key: 'p', load: () => import('../pages/Proposals.svelte') },
  { path: 'pipelines', title: 'Pipelines', key: 'r', load: () => import('../pages/Pipelines.svelte') },
  { path: 'health', title: 'Health', key: 'e', load: () => import('../pages/Health.svelte') },
];
