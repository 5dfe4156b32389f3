import { isObject, tryParseJson } from '../base/index.js'

/**
 * Which options of two nodes differ, by the JSON objects of their digests. An option that only one of them has is of another
 * version, and does not count.
 */
export function differences(one: string, other: string): readonly string[] {
  const [a, b] = [tryParseJson(one), tryParseJson(other)]
  if (!isObject(a) || !isObject(b)) return ['all options']
  const right = new Map(Object.entries(b))
  return Object.entries(a).flatMap(([name, value]) => (right.has(name) && right.get(name) !== value ? [name] : []))
}
