/** Tables of the entities of one type: the queries that read them, from what the address says. */
import { store } from './store.svelte';
import type { Image, Properties, SchemaProperty, SchemaType, Value } from './wire';

export interface Filter { property: string; op: string; value: string }

export const OPERATORS: Record<string, string> = {
  eq: '=', ne: '≠', lt: '<', le: '≤', gt: '>', ge: '≥', has: 'contains', starts: 'starts with', null: 'is null', set: 'is not null',
};
const WORDS: Record<string, string> = { eq: '=', ne: '!=', lt: '<', le: '<=', gt: '>', ge: '>=', has: 'contains', starts: 'starts_with' };

const ID: SchemaProperty = { name: 'id', type: 'String', nullable: false, key: true, unique: true, indexed: true, description: 'the ID of the entity' };

export function isReadable(property: SchemaProperty): boolean {
  return !property.type.startsWith('Vector') && property.type !== 'Blob';
}
export const isNumeric = (property: SchemaProperty): boolean => /^[IUF]\d\d$/.test(property.type);
export const isText = (property: SchemaProperty): boolean => property.type === 'String' || property.type.startsWith('enum');
export const isOrderable = (property: SchemaProperty): boolean => isNumeric(property) || isText(property) || ['Date', 'DateTime', 'Bool'].includes(property.type);

/** Return the operators that a property may be filtered with. */
export function operatorsOf(property: SchemaProperty): string[] {
  const tests = property.nullable ? ['null', 'set'] : [];
  if (property.type.startsWith('[')) return ['has', ...tests];
  if (property.type === 'Bool') return ['eq', 'ne', ...tests];
  const order = isOrderable(property) ? ['lt', 'le', 'gt', 'ge'] : [];
  return ['eq', 'ne', ...(isText(property) ? ['has', 'starts'] : []), ...order, ...tests];
}

/** Return the columns of a table: the ID, the ends of an edge, and what a query can read. */
export function columnsOf(type: SchemaType): SchemaProperty[] {
  const ends = type.kind === 'edge' ? [{ ...ID, name: 'from', description: `${type.src} at its start` }, { ...ID, name: 'to', description: `${type.dst} at its end` }] : [];
  const keyed = type.key.length === 1 && type.kind === 'node';
  const own = type.properties.filter(isReadable);
  const order = [...own.filter((one) => one.key), ...own.filter((one) => !one.key && one.name === type.display), ...own.filter((one) => !one.key && one.name !== type.display)];
  return [...(keyed ? [] : [ID]), ...ends, ...order];
}

export function parseFilters(texts: string[]): Filter[] {
  return texts.flatMap((text) => {
    const [property = '', op = '', ...rest] = text.split(':');
    return property && OPERATORS[op] ? [{ property, op, value: rest.join(':') }] : [];
  });
}
export const filterText = (filter: Filter): string => `${filter.property}:${filter.op}:${filter.value}`;

export interface TableRequest { type: SchemaType; filters: Filter[]; sort: string | null; limit: number; offset: number }
export interface TableQuery { rows: string; count: string; params: Properties }

/** Return the queries for a page of rows and for the number of all of them. */
export function tableQuery({ type, filters, sort, limit, offset }: TableRequest): TableQuery {
  const columns = columnsOf(type);
  const subject = type.kind === 'edge' ? `$from $e:${type.word} $to` : `$e: ${type.name}`;
  const parameters: string[] = [];
  const params: Properties = {};
  const conditions = filters.flatMap((filter, index) => {
    const property = columns.find((one) => one.name === filter.property) ?? (filter.property === 'id' ? ID : undefined);
    if (!property) return [];
    const left = reference(property.name);
    if (filter.op === 'null') return [`${left} is null`];
    if (filter.op === 'set') return [`${left} is not null`];
    const element = property.type.replace(/^\[(.*)\]$/, '$1');
    parameters.push(`$f${index}: ${element.startsWith('enum') ? 'String' : element}`);
    params[`f${index}`] = typed(filter.value, element);
    return [`${left} ${WORDS[filter.op]} $f${index}`];
  });
  const head = parameters.length ? `(${parameters.join(', ')})` : '()';
  const match = `match { ${[subject, ...conditions].join('  ')} }`;
  const all = [...new Map([ID, ...columns].map((column) => [column.name, column])).values()];
  const outputs = all.map((column, index) => `${reference(column.name)} as c${index}`).join(', ');
  const key = sort?.replace(/^-/, '');
  const by = columns.some((column) => column.name === key) || key === 'id' ? `${reference(key!)} ${sort!.startsWith('-') ? 'desc' : 'asc'}, ` : '';
  return {
    rows: `query rows${head} { ${match} return { ${outputs} } order { ${by}$e.id } limit ${limit} offset ${offset} }`,
    count: `query rows${head} { ${match} return { count($e.id) as entities } }`,
    params,
  };
}

/** Return rows under the names of their properties. */
export function namedRows(type: SchemaType, rows: Properties[]): Properties[] {
  const names = [...new Map([ID, ...columnsOf(type)].map((column) => [column.name, column])).keys()];
  return rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row[`c${index}`] ?? null])));
}

function reference(name: string): string {
  return name === 'from' ? '$from.id' : name === 'to' ? '$to.id' : `$e.${name}`;
}

function typed(text: string, type: string): Value {
  if (type === 'Bool') return text === 'true';
  if (/^F\d\d$/.test(type)) return Number(text);
  return text;
}

/** Return how people call an entity: by the ends of an edge, or by the property that its type displays. */
export function displayName(kind: string, type: string, id: string, image: Image | undefined): string {
  if (image?.endpoints) return `${image.endpoints.from} → ${image.endpoints.to}`;
  const names = [store.type(kind, type)?.display, 'name', 'title', 'label'];
  const text = names.map((name) => (name ? image?.properties[name] : null)).find((value) => typeof value === 'string' && value !== '');
  return (text as string | undefined) ?? id;
}
