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
  // `npm run dev` shows the graphs of a server on its usual port that needs no token.
  server: { proxy: { '^/(graphs|session|openapi.json)': { target: 'http://127.0.0.1:8080', changeOrigin: true } } },
});
