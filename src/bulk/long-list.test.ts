import { expect, it } from 'vitest'
import { textsOf } from '../store/operations/bulk-named.js'
import { ListCutter, type Place } from './long-list.js'

const ids = Array.from({ length: 9_000 }, (_, index) => `wfr_${String(index).padStart(18, '0')}`)
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const list = JSON.stringify(ids)

/** What is cut of a text that arrives so many bytes at a time. */
function cut(text: Uint8Array, place: Place, step: number) {
  const cutter = new ListCutter()
  const pieces: Uint8Array[] = []
  for (let at = 0; at < text.length; at += step) pieces.push(...cutter.take(text.subarray(at, at + step)))
  return { pieces, rest: cutter.rest(place) }
}

/** As little at a time as a slow network brings, as much as a connection holds, and everything at once. */
const STEPS = [1_000, 65_536, Number.MAX_SAFE_INTEGER]

it.each([
  ['as JavaScript writes it', JSON.stringify({ report: true, workflowRunIds: ids, count: 7 })],
  ['as Python writes it', `{"report": true, "workflowRunIds": ${list.replaceAll(',', ', ')}, "count": 7}`],
  ['with a line each', JSON.stringify({ workflowRunIds: ids, report: true, count: 7 }, null, 2)],
])('cuts a long list into pieces that are parsed one by one, %s', (_, text) => {
  for (const step of STEPS) {
    const { rest, pieces } = cut(bytes(text), 'request', step)
    expect(rest).toEqual({ report: true, count: 7, workflowRunIds: [] })
    expect(pieces.flatMap((piece) => textsOf(piece))).toEqual(ids)
    if (step < text.length) expect(pieces.length).toBeGreaterThan(2)
  }
})

it('hands over a piece as soon as it is whole', () => {
  const cutter = new ListCutter()
  const text = bytes(JSON.stringify({ workflowRunIds: ids }))
  expect(cutter.take(text.subarray(0, 60_000))).toEqual([])
  const [piece = new Uint8Array(), ...others] = cutter.take(text.subarray(60_000, 90_000))
  expect(others).toEqual([])
  const first = textsOf(piece) ?? []
  expect(first).toEqual(ids.slice(0, first.length))
  expect(first.length).toBeGreaterThan(3_000)
})

it.each([
  ['is short', '{"workflowRunIds":["wfr_1"]}'],
  ['holds escapes', `{"reason":"\\u0041","workflowRunIds":${list}}`],
  ['names the list twice', `{"workflowRunIds":[],"workflowRunIds":${list}}`],
  ['has the list in something else', `{"selector":{"workflowRunIds":${list}}}`],
  ['has another value there', `{"workflowRunIds":"wfr_1","label":${list}}`],
  ['only speaks of the list', `{"reason":"workflowRunIds","label":${list}}`],
  ['has a list in the list', `{"workflowRunIds":[${list}]}`],
  ['is cut off', `{"workflowRunIds":${list}`],
  ['is no text', `{"reason":"\uDC00","workflowRunIds":${list}`],
])('leaves a request alone that %s', (_, text) => {
  for (const step of STEPS) expect(cut(bytes(text), 'request', step).rest).toBeUndefined()
})

it.each([
  ['a number', `["${ids.join('","')}",7]`],
  ['an empty text', `["${ids.join('","')}",""]`],
  ['nothing behind a comma', `["${ids.join('","')}",]`],
  ['an id that is a comma', `["${ids.join('","')}",${Array(20_000).fill('","').join()}]`],
  ['an id with a bracket', `["a]","${ids.join('","')}"]`],
])('cuts a list with %s so that a piece of it does not parse', (_, elements) => {
  for (const step of STEPS) {
    const { rest, pieces } = cut(bytes(`{"workflowRunIds":${elements}}`), 'request', step)
    const parsed = rest ? pieces.map(textsOf) : [undefined]
    const isWhole = JSON.stringify(parsed.flat()) === elements
    expect(parsed.includes(undefined) || isWhole).toBe(true)
  }
})

it('cuts a list out of a selector, where that is its place', () => {
  const inSelector = bytes(`{"kind":"cancelRuns","selector":{"workflowRunIds":${list},"count":7}}`)
  const { rest, pieces } = cut(inSelector, 'selector', 65_536)
  expect(rest).toEqual({ kind: 'cancelRuns', selector: { workflowRunIds: [], count: 7 } })
  expect(pieces.flatMap((piece) => textsOf(piece))).toEqual(ids)
  expect(cut(inSelector, 'request', 65_536).rest).toBeUndefined()
  expect(cut(bytes(`{"workflowRunIds":${list}}`), 'selector', 65_536).rest).toBeUndefined()
})
