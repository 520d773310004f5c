/** The thread that lays graphs out, as a file of Studio; the build for notebooks has another one. */
export const startLayout = (): Worker => new Worker(new URL('./layout.worker.ts', import.meta.url), { type: 'module' });
