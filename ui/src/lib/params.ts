import type { Param, Properties, SchemaProperty, Value } from './wire';

/** Return the values of parameters that people typed; the server checks them. */
export function readParams(params: Param[], typed: Record<string, string>): Properties {
  const values: Properties = {};
  for (const param of params) {
    const text = typed[param.name];
    if (text === undefined || (text === '' && (param.nullable || param.kind !== 'string'))) continue;
    values[param.name] = read(param.kind, text);
  }
  return values;
}

function read(kind: string, text: string): Value {
  if (kind === 'bool') return text.trim() === 'true' ? true : text.trim() === 'false' ? false : text;
  if (kind === 'float') return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
  if (kind === 'list' || kind === 'vector') {
    try {
      return JSON.parse(text) as Value;
    } catch {
      return text.split(',').map((one) => one.trim());
    }
  }
  return text;
}

/** Return a value as a person would type it. */
export function writeTyped(value: Value | undefined): string {
  return value === null || value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);
}

/** Return what a person typed as a value of a property; empty is null where that is permitted. */
export function readTyped(text: string, property: SchemaProperty | undefined): Value {
  const type = property?.type ?? 'String';
  if (text === '' && property?.nullable) return null;
  if (type.startsWith('[') || type.startsWith('Vector')) return read('list', text);
  if (type === 'Bool') return read('bool', text);
  if (/^F\d\d$/.test(type)) return read('float', text);
  if (/^[IU]\d\d$/.test(type)) return Number.isSafeInteger(Number(text)) && text.trim() !== '' ? Number(text) : text;
  return text;
}
