import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { unitMs, workMs } from '../../test/support/processor-time.js'
import { type ExceededLimit, type JsonLimits, JsonScan } from '../base/index.js'
import { parseJson } from './json.js'

const bytesOf = (text: string) => new TextEncoder().encode(text)
const FREE: JsonLimits = { levels: 1e9, values: 1e9, members: 1e9, text: 1e9 }

/** The smallest limit that a text does not exceed, scanned in slices of different sizes. */
function leastOf(limit: ExceededLimit, json: string): number {
  for (let most = 0; ; most++) {
    const scan = new JsonScan(bytesOf(json), { ...FREE, [limit]: most })
    let exceeded: ExceededLimit | undefined
    for (let size = 1; !scan.isAtEnd && !exceeded; size++) exceeded = scan.advance(size)
    if (!exceeded) return most
  }
}

it.each([
  ['7', 0],
  ['[]', 1],
  ['{"a":[1,{"b":[]}]}', 4],
  ['[[],[],[[]]]', 3],
  ['["[[[[", "]", {"{{{": "\\"[[["}]', 2],
  ['["\\\\", [1], "\\\\\\"[[["]', 2],
  ['"[[[[', 0],
])('%s is %i levels deep', (json, depth) => {
  expect(leastOf('levels', json)).toBe(depth)
})

it.each([61, 62, 63, 64, 65, 66, 127, 128, 129, 1_000])(
  'quotes and backslashes after %i bytes of a string are not missed',
  (length) => {
    const long = 'x'.repeat(length)
    const json = JSON.stringify([`${long}"[[[`, `${long}\\`, [long], `"${long}\\"[[["${long}${long}`, { [long]: [] }])
    expect([leastOf('levels', json), leastOf('values', json)]).toEqual([3, 8])
  },
)

it('a compressed body is refused by that name', () => {
  expect(() => parseJson(gzipSync('{}'))).toThrow(/it is compressed, and the server decodes no body/)
})

it('long strings are skipped in a fraction of the time of looking at each byte', () => {
  const json = new Uint8Array(64 * 2 ** 20).fill(0x78)
  json[0] = 0x22
  const ms = workMs(() => new JsonScan(json, FREE).advance(json.length))
  // At each byte: more than four units.
  expect(ms / unitMs()).toBeLessThan(3)
})

it.each([
  ['[{},{},{}]', 6],
  ['[1,2,"a,b,[","\\",c"]', 4],
  ['{"a":1,"b":[],"c":2}', 4],
])('%s has %i values', (json, values) => {
  expect(leastOf('values', json)).toBe(values)
})

it.each([
  ['{"a":1,"b":{"c":":"}}', 3],
  ['[{"a":1},{"b":2,"c":3},{"d":4}]', 2],
])('%s has at most %i members in one element', (json, members) => {
  expect(leastOf('members', json)).toBe(members)
})

const parse = async (json: string | Uint8Array, texts: 'short' | 'long' = 'long') =>
  parseJson(typeof json === 'string' ? bytesOf(json) : json, texts)
const refusal = (json: string | Uint8Array) =>
  parse(json).then(
    () => 'parsed',
    (error: Error) => error.message,
  )
const big = (index: number) => ({ id: index, text: `ü"\\[{,:${'x'.repeat(20)}`, more: { list: [1, null, true, 'a'] } })

it.each([
  ['a list that is parsed in chunks', Array.from({ length: 20_000 }, (_, index) => big(index))],
  ['a list with surrounding white space', Array.from({ length: 20_000 }, (_, index) => [index])],
  ['long texts', Array.from({ length: 6 }, () => 'é€😀\\"'.repeat(60_000))],
  ['a list of one', [{ ids: Array.from({ length: 100_000 }, (_, index) => `wfr_${index}`) }]],
])('the parser parses %s correctly', async (_, value) => {
  const json = ` \n${JSON.stringify(value, null, 1)} \t`
  expect(await parse(json)).toEqual(value)
})

const list = JSON.stringify(Array.from({ length: 100_000 }, (_, index) => index))
it.each([
  ['has nothing between two commas', list.replace(',50000,', ',,')],
  ['ends with a comma', list.replace(/]$/, ',]')],
  ['is not closed', list.slice(0, -1)],
  ['is followed by another', `${list},${list}`],
  ['is closed by another bracket', list.replace(/]$/, '}')],
  ['is closed in its middle', list.replace(',50000,', '],[')],
  ['holds half a list', list.replace(',50000,', ',[1,')],
])('the parser refuses a long list that %s', async (_, json) => {
  expect(await refusal(json)).toMatch('not valid JSON')
})

it('the parser refuses one very long string unless the operation allows it', async () => {
  const json = (length: number) => JSON.stringify({ text: 'a'.repeat(length) })
  await expect(parse(json(2 ** 20 + 10), 'short')).rejects.toMatchObject({ code: 'body_too_complex' })
  expect(await parse(json(2 ** 20 - 10), 'short')).toEqual({ text: 'a'.repeat(2 ** 20 - 10) })
})

it('the parser refuses invalid UTF-8 anywhere in a long body', async () => {
  for (const at of [10, 1_048_577, 2_999_990]) {
    const bytes = bytesOf(`["${'a'.repeat(3_000_000)}"]`)
    bytes[at] = 0xff
    expect(await refusal(bytes)).toMatch('UTF-8')
  }
})

it.each([
  ['values', `[${'{},'.repeat(3_000_000)}{}]`],
  ['members', JSON.stringify({ headers: Object.fromEntries(Array.from({ length: 20_001 }, (_, i) => [`a${i}`, 1])) })],
  ['levels', `${'['.repeat(3_000_000)}`],
])('the parser refuses a text with too many %s', async (limit, json) => {
  expect(await refusal(json)).toMatch(
    { values: '250,000 JSON values', members: '20,000 members', levels: '64 levels' }[limit] ?? '',
  )
})
