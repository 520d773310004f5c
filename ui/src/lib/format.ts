import type { Counts, Image, Value } from './wire';

/** Characters that change how other text is drawn, or that cannot be seen: they are shown by name. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\u206a-\u206f\u3164\ufeff\ufff9-\ufffb]/g;

/** Return text as it is safe to look at: no bidi overrides, terminal escapes or zero-width signs. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (sign) => `⟨${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = /[\ud800-\udbff]/.test(text[most - 1] ?? '') ? most - 1 : most;
  return `${text.slice(0, end)}…`;
}

const numbers = new Intl.NumberFormat('en');
export const count = (value: number): string => numbers.format(value);
export const plural = (value: number, one: string, many = `${one}s`): string => `${count(value)} ${value === 1 ? one : many}`;

export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let at = -1;
  let rest = size;
  while (rest >= 1000 && at < units.length - 1) (rest /= 1000), at++;
  return `${rest < 10 ? rest.toFixed(1) : Math.round(rest)} ${units[at]}`;
}

export function seconds(value: number): string {
  if (value < 0.001) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`;
  if (value < 90) return `${value.toFixed(1)} s`;
  return `${Math.round(value / 60)} min`;
}

export const percent = (part: number, whole: number): string => (whole === 0 ? '100%' : `${Math.floor((100 * part) / whole)}%`);

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [['year', 31_557_600], ['month', 2_629_800], ['day', 86_400], ['hour', 3600], ['minute', 60]];

/** Return how long ago something was; `micros` since 1970. */
export function ago(micros: number): string {
  const passed = micros / 1e6 - Date.now() / 1000;
  for (const [unit, size] of UNITS) if (Math.abs(passed) >= size) return relative.format(Math.round(passed / size), unit);
  return 'just now';
}

export function moment(micros: number): string {
  return new Date(micros / 1000).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
}

export const iso = (micros: number): string => new Date(micros / 1000).toISOString();
export const shortId = (id: string): string => (id.length > 12 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id);

/** Return a value on one line of at most `most` characters. */
export function valueText(value: Value | undefined, most = 200): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string') return visible(cut(value, most));
  if (Array.isArray(value) && value.length > 8 && typeof value[0] === 'number')
    return `[${value.slice(0, 4).map((one) => valueText(one)).join(', ')}, … ${plural(value.length, 'number')}]`;
  if (typeof value === 'object') return visible(cut(JSON.stringify(value), most));
  return String(value);
}

export function totals(counts: Record<string, Counts> | undefined): Counts {
  const sum = { inserted: 0, updated: 0, deleted: 0 };
  for (const one of Object.values(counts ?? {})) {
    sum.inserted += one.inserted;
    sum.updated += one.updated;
    sum.deleted += one.deleted;
  }
  return sum;
}

export interface PropertyChange { name: string; before?: Value; after?: Value; changed: boolean }

/** Return the properties of two images, the changed ones first. */
export function propertyChanges(before: Image | undefined, after: Image | undefined): PropertyChange[] {
  const one = flat(before);
  const other = flat(after);
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  const all = names.map((name) => {
    const same = JSON.stringify(one[name]) === JSON.stringify(other[name]);
    return { name, before: one[name], after: other[name], changed: !same };
  });
  return all.sort((a, b) => Number(b.changed) - Number(a.changed));
}

function flat(image: Image | undefined): Record<string, Value> {
  if (!image) return {};
  const ends: Record<string, Value> = image.endpoints ? { from: image.endpoints.from, to: image.endpoints.to } : {};
  return { ...ends, ...image.properties };
}

export async function copy(text: string): Promise<void> {
  await navigator.clipboard.writeText(text);
}

export function download(name: string, media: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: media }));
  const link = Object.assign(document.createElement('a'), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
