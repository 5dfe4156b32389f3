/**
 * The types of values that have elements: the commands that read them page by page, and that add,
 * change and remove an element. Plain data and functions; `value-elements.tsx` renders them.
 */
import type { CommandLine } from '../../../api/data-plane.js'
import { escaped, itemsOf, pairsOf, type Reply, strictText, textOf } from '../../../lib/resp.js'
import type { KeyType } from './keys.js'

/** A field of an element. */
export interface ElementField {
  readonly key: string
  readonly label: string
  /** Whether it cannot be changed once the element exists. */
  readonly fixed?: true
  /** The server assigns it; the form has no field for it. */
  readonly given?: true
}

/** An element of a value. */
export interface Element {
  /** Unique in the list. */
  readonly id: string
  /** The text of each part. */
  readonly cells: readonly Uint8Array<ArrayBuffer>[]
}

/** The parts of an element as texts; `undefined` if one is binary and cannot be written back. */
export function textsOf({ cells }: Element): string[] | undefined {
  const texts = cells.map(strictText).filter((text) => text !== undefined)
  return texts.length === cells.length ? texts : undefined
}

/** A page of elements. */
export interface ElementPage {
  readonly elements: readonly Element[]
  /** The start of the next page; `undefined`: this was the last one. */
  readonly next: string | undefined
}

/** A type of values that have elements. */
export interface Collection {
  readonly parts: readonly ElementField[]
  /** The command that counts the elements. */
  readonly count: (key: string) => CommandLine
  /** The command that reads a page; `from` is empty for the first one. */
  readonly page: (key: string, from: string) => CommandLine
  readonly read: (reply: Reply, from: string) => ElementPage
  /** `values` holds a text for each part that the server does not assign. */
  readonly add: (key: string, values: readonly string[]) => CommandLine[]
  /** Absent: elements are only added and removed. `before` is the element when it was read. */
  readonly change?: (key: string, id: string, values: readonly string[], before: readonly string[]) => CommandLine[]
  readonly remove: (key: string, id: string, values: readonly string[]) => CommandLine[]
}

/** Elements of one page. */
const PAGE = 200

const encoder = new TextEncoder()
const bytesOf = (reply: Reply | undefined): Uint8Array<ArrayBuffer> =>
  reply?.kind === 'bulk' ? reply.bytes : encoder.encode(textOf(reply))

/** The identity of an element: its text, or its bytes if it is binary. */
const idOf = (reply: Reply | undefined): string => escaped(bytesOf(reply))

/** A page of HSCAN and similar: a cursor and a flat list. */
function readScan(reply: Reply, elementsOf: (list: Reply | undefined) => Element[]): ElementPage {
  const [cursor, list] = itemsOf(reply)
  const next = textOf(cursor)
  return { elements: elementsOf(list), next: next === '0' ? undefined : next }
}

/** A page of a range: a full page may have a successor. */
const nextOffset = (from: string, found: number): string | undefined =>
  found < PAGE ? undefined : String(Number(from || '0') + PAGE)

const CHANGE_FIELD = `if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return redis.error_reply('ERR the field has changed since it was read. Read it again')
end
return redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])`

/** Scripts that add only a new field or member, because the plain commands would replace an existing one. */
const ADD_FIELD = `if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then
  return redis.error_reply('ERR the field exists already. Edit it in the list, or choose another name')
end
return 1`
const ADD_MEMBER = `if redis.call('ZADD', KEYS[1], 'NX', ARGV[1], ARGV[2]) == 0 then
  return redis.error_reply('ERR the member exists already. Edit it in the list')
end
return 1`

const hash: Collection = {
  parts: [
    { key: 'field', label: 'Field', fixed: true },
    { key: 'value', label: 'Value' },
  ],
  count: (key) => ['HLEN', key],
  page: (key, from) => ['HSCAN', key, from || '0', 'COUNT', PAGE],
  read: (reply) =>
    readScan(reply, (list) =>
      pairsOf(list).map(([field, value]) => ({ id: idOf(field), cells: [bytesOf(field), bytesOf(value)] })),
    ),
  add: (key, [field = '', value = '']) => [['EVAL', ADD_FIELD, 1, key, field, value]],
  change: (key, _id, [field = '', value = ''], [, before = '']) => [
    ['EVAL', CHANGE_FIELD, 1, key, field, before, value],
  ],
  remove: (key, _id, [field = '']) => [['HDEL', key, field]],
}

/**
 * Elements of a list are addressed by index, which shifts when another client pushes or pops. The script changes an element
 * only if the index still has the value that the page showed.
 */
const ONLY_THIS = `if redis.call('LINDEX', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return redis.error_reply('ERR the list has changed since it was read. Read it again')
end
redis.call('LSET', KEYS[1], ARGV[1], ARGV[3])`
const CHANGE_PLACE = `${ONLY_THIS}
return 1`
/** Lists remove by value, not by index. */
const REMOVE_PLACE = `${ONLY_THIS}
return redis.call('LREM', KEYS[1], 1, ARGV[3])`

/** A unique text that marks the element to remove. */
const mark = (): string => `homeport-removed-${crypto.getRandomValues(new Uint32Array(4)).join('-')}`

const list: Collection = {
  parts: [
    { key: 'index', label: 'Index', fixed: true, given: true },
    { key: 'value', label: 'Value' },
  ],
  count: (key) => ['LLEN', key],
  page: (key, from) => ['LRANGE', key, from || '0', Number(from || '0') + PAGE - 1],
  read: (reply, from) => {
    const items = itemsOf(reply)
    const first = Number(from || '0')
    const elements = items.map((item, i) => ({
      id: String(first + i),
      cells: [encoder.encode(String(first + i)), bytesOf(item)],
    }))
    return { elements, next: nextOffset(from, items.length) }
  },
  add: (key, [value = '']) => [['RPUSH', key, value]],
  change: (key, id, [, value = ''], [, before = '']) => [['EVAL', CHANGE_PLACE, 1, key, id, before, value]],
  remove: (key, id, [, before = '']) => [['EVAL', REMOVE_PLACE, 1, key, id, before, mark()]],
}

const set: Collection = {
  parts: [{ key: 'member', label: 'Member' }],
  count: (key) => ['SCARD', key],
  page: (key, from) => ['SSCAN', key, from || '0', 'COUNT', PAGE],
  read: (reply) =>
    readScan(reply, (items) => itemsOf(items).map((member) => ({ id: idOf(member), cells: [bytesOf(member)] }))),
  add: (key, [member = '']) => [['SADD', key, member]],
  remove: (key, _id, [member = '']) => [['SREM', key, member]],
}

const zset: Collection = {
  parts: [
    { key: 'score', label: 'Score' },
    { key: 'member', label: 'Member', fixed: true },
  ],
  count: (key) => ['ZCARD', key],
  page: (key, from) => ['ZRANGE', key, from || '0', Number(from || '0') + PAGE - 1, 'WITHSCORES'],
  read: (reply, from) => {
    const pairs = pairsOf(reply)
    const elements = pairs.map(([member, score]) => ({ id: idOf(member), cells: [bytesOf(score), bytesOf(member)] }))
    return { elements, next: nextOffset(from, pairs.length) }
  },
  add: (key, [score = '', member = '']) => [['EVAL', ADD_MEMBER, 1, key, score, member]],
  // With XX, a member that was removed meanwhile is not added again.
  change: (key, _id, [score = '', member = '']) => [['ZADD', key, 'XX', score, member]],
  remove: (key, _id, [, member = '']) => [['ZREM', key, member]],
}

/** The fields of a stream entry on lines of `name=value`. */
const entryText = (fields: Reply | undefined): string =>
  pairsOf(fields)
    .map(([name, value]) => `${textOf(name)}=${textOf(value)}`)
    .join('\n')

const entryFields = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line.includes('='))
    .flatMap((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])

const stream: Collection = {
  parts: [
    { key: 'id', label: 'Entry', fixed: true, given: true },
    { key: 'fields', label: 'Fields, one name=value per line', fixed: true },
  ],
  count: (key) => ['XLEN', key],
  page: (key, from) => ['XREVRANGE', key, from === '' ? '+' : `(${from}`, '-', 'COUNT', PAGE],
  read: (reply) => {
    const elements = itemsOf(reply).map((entry) => {
      const [id, fields] = itemsOf(entry)
      return { id: textOf(id), cells: [bytesOf(id), encoder.encode(entryText(fields))] }
    })
    return { elements, next: elements.length < PAGE ? undefined : elements.at(-1)?.id }
  },
  add: (key, [fields = '']) => [['XADD', key, '*', ...entryFields(fields)]],
  remove: (key, id) => [['XDEL', key, id]],
}

const CHANGE_STRING = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return redis.error_reply('ERR the value has changed since it was read. Read it again')
end
return redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')`

/** Changes a string if it still has the value that was read. Its expiry stays. */
export const changeString = (key: string, before: string, value: string): CommandLine => [
  ...['EVAL', CHANGE_STRING, 1, key, before, value],
]

/** Every type of value that has elements. */
export const COLLECTIONS: Readonly<Record<Exclude<KeyType, 'string'>, Collection>> = { hash, list, set, zset, stream }

/** The collection of a type, as the engine names it. */
export function collectionOf(type: string): Collection | undefined {
  return type in COLLECTIONS ? COLLECTIONS[type as keyof typeof COLLECTIONS] : undefined
}
