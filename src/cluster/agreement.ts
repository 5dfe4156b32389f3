import { isObject, tryParseJson } from '../base/index.js'

/**
 * The names of the options in which two nodes differ, from the JSON objects of the options' digests. An option that only one
 * node has belongs to another version and does not count.
 */
export function differences(one: string, other: string): readonly string[] {
  const [a, b] = [tryParseJson(one), tryParseJson(other)]
  if (!isObject(a) || !isObject(b)) return ['all options']
  const right = new Map(Object.entries(b))
  return Object.entries(a).flatMap(([name, value]) => (right.has(name) && right.get(name) !== value ? [name] : []))
}
