import { expect, it } from 'vitest'
import { readDrop, readDue, readFlowChange, readFlowNotes, readFlowUses, readLoad } from './peer-messages.js'

it('a node ignores the parts of a message of another node that it does not understand', () => {
  const junk = [null, 7, 'text', [], { seqs: 'no', places: [null, { nextAt: 1 }, { nextAt: 1, seq: 2, more: 3 }] }]
  expect(junk.map(readDrop)).toEqual(junk.map(() => ({ seqs: [] })))
  expect(readDrop({ groupKeys: [1, '2', 3.5], mayBeOfferedAgain: true })).toEqual({
    groupKeys: [1],
    mayBeOfferedAgain: true,
  })
  expect(readDue(junk[4])).toEqual({ partition: -1, places: [{ nextAt: 1, seq: 2 }], keys: [] })
  expect(readDue({ partition: 5, keys: [['acc', 'k'], ['acc'], 'k'] })).toEqual({
    partition: 5,
    places: [],
    keys: [['acc', 'k']],
  })
  expect(junk.map(readFlowChange)).toEqual(junk.map(() => ({ keys: [], isReset: false })))
  expect(readFlowNotes([{ name: 'acc/k', begun: 1, periodStart: 2 }, { name: 'acc/k' }, null])).toHaveLength(1)
  expect(readFlowUses([['k', { open: 1, begun: 2, periodStart: 3 }], ['k', {}], 1])).toHaveLength(1)
  expect(junk.map(readLoad)).toEqual(junk.map(() => ({ sending: 0, most: 0 })))
})
