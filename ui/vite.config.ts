import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// The Content-Security-Policy of the server permits files of the server only: nothing is inlined.
export default defineConfig({
  base: '/studio/',
  plugins: [svelte()],
  html: { cspNonce: '__CSP_NONCE__' },
  build: {
    outDir: '../src/omnigraph/server/studio',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: 'es2022',
    license: { fileName: 'licenses.md' },
    modulePreload: { polyfill: false },
    rolldownOptions: { input: { index: 'index.html', docs: 'docs.html' } },
  },
  worker: { format: 'es' },
  server: {
    proxy: Object.fromEntries(
      ['/graphs', '/session', '/default-graph', '/openapi.json', '/healthz', '/readyz'].map((path) => [
        path,
        { target: process.env.OMNIGRAPH_URL ?? 'http://127.0.0.1:8080', changeOrigin: true },
      ]),
    ),
  },
});
