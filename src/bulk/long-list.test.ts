import { expect, it } from 'vitest'
import { textsOf } from '../store/operations/bulk-named.js'
import { cutLongList } from './long-list.js'

const ids = Array.from({ length: 9_000 }, (_, index) => `wfr_${String(index).padStart(18, '0')}`)
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const list = JSON.stringify(ids)

it.each([
  ['as JavaScript writes it', JSON.stringify({ report: true, workflowRunIds: ids, count: 7 })],
  ['as Python writes it', `{"report": true, "workflowRunIds": ${list.replaceAll(',', ', ')}, "count": 7}`],
  ['with a line each', JSON.stringify({ workflowRunIds: ids, report: true, count: 7 }, null, 2)],
])('cuts a long list into pieces that are parsed one by one, %s', async (_, text) => {
  const cut = await cutLongList(bytes(text), 'request')
  expect(cut?.rest).toEqual({ report: true, count: 7, workflowRunIds: [] })
  expect(cut?.pieces.length).toBeGreaterThan(2)
  expect(cut?.pieces.flatMap((piece) => textsOf(piece))).toEqual(ids)
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
])('leaves a request alone that %s', async (_, text) => {
  expect(await cutLongList(bytes(text), 'request')).toBeUndefined()
})

it.each([
  ['a number', `["${ids.join('","')}",7]`],
  ['an empty text', `["${ids.join('","')}",""]`],
  ['nothing behind a comma', `["${ids.join('","')}",]`],
  ['an id that is a comma', `["${ids.join('","')}",${Array(20_000).fill('","').join()}]`],
  ['an id with a bracket', `["a]","${ids.join('","')}"]`],
])('cuts a list with %s so that a piece of it does not parse', async (_, elements) => {
  const cut = await cutLongList(bytes(`{"workflowRunIds":${elements}}`), 'request')
  const parsed = cut?.pieces.map(textsOf) ?? [undefined]
  const isWhole = JSON.stringify(parsed.flat()) === elements
  expect(parsed.includes(undefined) || isWhole).toBe(true)
})

it('cuts a list out of a selector, where that is its place', async () => {
  const inSelector = bytes(`{"kind":"cancelRuns","selector":{"workflowRunIds":${list},"count":7}}`)
  const cut = await cutLongList(inSelector, 'selector')
  expect(cut?.rest).toEqual({ kind: 'cancelRuns', selector: { workflowRunIds: [], count: 7 } })
  expect(cut?.pieces.flatMap((piece) => textsOf(piece))).toEqual(ids)
  expect(await cutLongList(inSelector, 'request')).toBeUndefined()
  expect(await cutLongList(bytes(`{"workflowRunIds":${list}}`), 'selector')).toBeUndefined()
})
