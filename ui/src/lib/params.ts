import type { Param, Properties, Value } from './wire';

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
