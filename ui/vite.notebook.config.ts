import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';

const file = (path: string): string => decodeURIComponent(new URL(path, import.meta.url).pathname);

/** A notebook gets one module: threads and fonts cannot be files beside it. */
const oneModule: Plugin = {
  name: 'one-module',
  enforce: 'pre',
  resolveId(source, importer) {
    if (source === './layoutThread' && importer?.endsWith('/lib/canvas.ts')) return file('src/notebook/layoutThread.ts');
    return null;
  },
  transform(code, id) {
    return id.split('?')[0]!.endsWith('/styles/base.css') ? code.replaceAll(/@import '@fontsource[^;]*;/g, '') : null;
  },
};

export default defineConfig({
  plugins: [oneModule, svelte({ compilerOptions: { css: 'injected' } })],
  publicDir: false,
  build: {
    outDir: '../src/omnigraph/notebook/canvas',
    emptyOutDir: true,
    target: 'es2022',
    license: { fileName: 'licenses.md' },
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: 'src/notebook/main.ts',
      preserveEntrySignatures: 'strict',
      output: { format: 'es', entryFileNames: 'canvas.js' },
    },
  },
  define: { 'process.env.NODE_ENV': '"production"' },
  worker: { format: 'es' },
});
