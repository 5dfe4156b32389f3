import fc from 'fast-check'
import { expect, it } from 'vitest'
import { OUTCOMES, outcomeByte, outcomeOf, packSeqs, unpackSeqs } from './bulk-pack.js'

it('packed numbers are unpacked unchanged, whatever the deltas', () => {
  const ascending = fc
    .uniqueArray(fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })))
    .map((seqs) => seqs.sort((a, b) => a - b))
  fc.assert(
    fc.property(ascending, (seqs) => {
      expect(unpackSeqs(packSeqs(seqs))).toEqual(seqs)
    }),
  )
})

it('packing takes one byte for each of consecutive numbers', () => {
  const seqs = Array.from({ length: 1_000 }, (_, index) => 1_000_000 + index)
  expect(packSeqs(seqs).length).toBeLessThan(1_005)
})

it('every outcome is mapped to a byte and back, and a missing byte to pending', () => {
  for (const outcome of OUTCOMES) expect(outcomeOf(outcomeByte(outcome))).toBe(outcome)
  expect(outcomeOf(undefined)).toBe('pending')
})
