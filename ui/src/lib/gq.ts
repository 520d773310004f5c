/** The query language for CodeMirror: colours, completion and diagnostics; the server knows the rest. */
import { autocompletion, type Completion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete';
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
import { linter, type Diagnostic } from '@codemirror/lint';
import type { Extension } from '@codemirror/state';
import { tags } from '@lezer/highlight';
import type { GraphClient, State } from './api';
import { visible } from './format';
import type { Lint } from './wire';

const KEYWORDS = new Set('query match return order limit offset not exists optional insert update delete set where and or in is null contains starts_with distinct asc desc as case when then else end true false'.split(' '));

const language = StreamLanguage.define<{ comment: boolean }>({
  name: 'gq',
  startState: () => ({ comment: false }),
  token(stream, state) {
    if (state.comment) {
      if (stream.match(/^.*?\*\//)) state.comment = false;
      else stream.skipToEnd();
      return 'comment';
    }
    if (stream.eatSpace()) return null;
    if (stream.match('//')) { stream.skipToEnd(); return 'comment'; }
    if (stream.match('/*')) { state.comment = true; return 'comment'; }
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return 'string';
    if (stream.match(/^\$[A-Za-z0-9_]*/)) return 'variableName';
    if (stream.match(/^@[a-z]+/)) return 'meta';
    if (stream.match(/^[A-Z][A-Za-z0-9_]*/)) return 'typeName';
    if (stream.match(/^\d+(\.\d+)?/)) return 'number';
    const word = stream.match(/^[a-z_][A-Za-z0-9_]*/) as RegExpMatchArray | null;
    if (word) return KEYWORDS.has(word[0]) ? 'keyword' : stream.match(/^\s*\(/, false) ? 'function' : 'propertyName';
    stream.next();
    return null;
  },
  tokenTable: { function: tags.function(tags.variableName) },
  languageData: { commentTokens: { line: '//', block: { open: '/*', close: '*/' } }, closeBrackets: { brackets: ['(', '{', '[', '"'] } },
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--series-2)' },
  { tag: tags.typeName, color: 'var(--series-1)', fontWeight: '600' },
  { tag: tags.variableName, color: 'var(--series-0)' },
  { tag: tags.function(tags.variableName), color: 'var(--series-4)' },
  { tag: tags.propertyName, color: 'var(--ink)' },
  { tag: tags.string, color: 'var(--add)' },
  { tag: tags.number, color: 'var(--series-5)' },
  { tag: tags.comment, color: 'var(--mute)', fontStyle: 'italic' },
  { tag: tags.meta, color: 'var(--series-6)' },
]);

const KINDS: Record<string, string> = { keyword: 'keyword', variable: 'variable', type: 'class', edge: 'interface', property: 'property', function: 'function' };

/** The server counts characters, the editor UTF-16 units: they differ beyond the basic plane. */
export const toUnits = (text: string, place: number): number => (isBasic(text) ? place : [...text].slice(0, place).join('').length);
const toCharacters = (text: string, place: number): number => (isBasic(text) ? place : [...text.slice(0, place)].length);
const isBasic = (text: string): boolean => !/[\ud800-\udfff]/.test(text);

export function gq(client: () => GraphClient, state: () => State, onlint: (lint: Lint) => void): Extension {
  async function complete(context: CompletionContext): Promise<CompletionResult | null> {
    const text = context.state.doc.toString();
    const before = context.matchBefore(/[$A-Za-z0-9_]+|[.:]|[{,]\s*|\$[a-z_]\w*\s+/);
    if (!before && !context.explicit) return null;
    const found = await client().complete(text, toCharacters(text, context.pos), state()).catch(() => null);
    if (found === null || context.aborted) return null;
    const options = found.items.map((item, index): Completion => ({
      label: item.label, type: KINDS[item.kind], detail: item.detail ?? undefined, info: item.about ? visible(item.about) : undefined,
      boost: item.kind === 'property' || item.kind === 'edge' ? 90 - index : undefined,
    }));
    return { from: toUnits(text, found.start), options, validFor: /^\$?[A-Za-z0-9_]*$/ };
  }

  const check = linter(
    async (view) => {
      const text = view.state.doc.toString();
      if (!text.trim()) { onlint({ status: 'ok', queries: [], diagnostics: [] }); return []; }
      const lint = await client().lint(text, state()).catch(() => null);
      if (lint === null || view.state.doc.toString() !== text) return [];
      onlint(lint);
      return lint.diagnostics.map((one): Diagnostic => {
        const from = toUnits(text, one.start);
        const to = Math.max(from, toUnits(text, one.end));
        const fix = /^did you mean `([^`]+)`\?$/.exec(one.hint ?? '')?.[1];
        return {
          from: Math.min(from, text.length), to: Math.min(to, text.length), severity: one.severity === 'info' ? 'info' : one.severity,
          message: visible(one.hint ? `${one.message}: ${one.hint}` : one.message),
          actions: fix ? [{ name: `Write ${fix}`, apply: (target, start, end) => target.dispatch({ changes: { from: start, to: end, insert: fix } }) }] : [],
        };
      });
    },
    { delay: 350 },
  );
  return [language, syntaxHighlighting(colours), autocompletion({ override: [complete], icons: true }), check];
}
