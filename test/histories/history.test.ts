import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ListCall, listBreach, type RegisterCall, registerBreach } from './history.js'

const write = (value: string, beganAt: number, endedAt = Number.POSITIVE_INFINITY): RegisterCall => ({
  kind: 'write',
  value,
  beganAt,
  endedAt,
})
const read = (value: string | null, beganAt: number, endedAt: number): RegisterCall => ({
  kind: 'read',
  value,
  beganAt,
  endedAt,
})

/** Whether some order explains the calls: tries all of them. */
function isExplained(calls: readonly RegisterCall[], value: string | null = null): boolean {
  if (calls.every(({ endedAt }) => endedAt === Number.POSITIVE_INFINITY)) return true
  const firstEnd = Math.min(...calls.map(({ endedAt }) => endedAt))
  return calls.some((call, index) => {
    if (call.beganAt > firstEnd || (call.kind === 'read' && call.value !== value)) return false
    return isExplained(calls.toSpliced(index, 1), call.value)
  })
}

describe('the history of a register', () => {
  it('is accepted with calls that overlap, and with a write without an answer that took effect late or never', () => {
    expect(registerBreach([read(null, 0, 1), write('a', 2, 5), read('a', 3, 4), read('a', 6, 7)])).toBeUndefined()
    expect(registerBreach([write('a', 1, 2), write('b', 3), read('a', 5, 6), read('b', 7, 8)])).toBeUndefined()
    expect(registerBreach([write('a', 1, 2), write('b', 3), read('a', 5, 6)])).toBeUndefined()
  })

  it('is refused with a lost write, an old value, a value from nowhere, or one from the future', () => {
    expect(registerBreach([write('a', 1, 2), read(null, 3, 4)])).toMatch(/had to be/)
    expect(registerBreach([write('a', 1, 2), write('b', 3, 4), read('a', 5, 6)])).toMatch(/had to be/)
    expect(registerBreach([write('a', 1), read('a', 2, 3), read(null, 4, 5)])).toMatch(/had to be/)
    expect(registerBreach([read('a', 1, 2)])).toBe('a was read, and nobody wrote it')
    expect(registerBreach([read('a', 1, 2), write('a', 3, 4)])).toBe('a was read before it was written')
  })

  it('is judged as by trying every order', () => {
    const time = fc.integer({ min: 0, max: 12 })
    const value = fc.constantFrom('a', 'b', 'c')
    const reads = fc.array(fc.tuple(fc.option(value), time, time), { maxLength: 4 })
    const writes = fc.dictionary(value, fc.tuple(time, fc.option(time, { nil: Number.POSITIVE_INFINITY })))
    fc.assert(
      fc.property(writes, reads, (written, seen) => {
        // Moments that differ: ends lie between the whole numbers.
        const calls = [
          ...Object.entries(written).map(([each, [from, length]]) => write(each, from, from + length + 0.5)),
          ...seen.map(([each, from, length]) => read(each, from, from + length + 0.5)),
        ]
        expect(registerBreach(calls) === undefined).toBe(isExplained(calls))
      }),
      { numRuns: 500 },
    )
  })
})

describe('the history of a list', () => {
  const append = (element: string, length: number | undefined, beganAt: number, endedAt: number): ListCall => ({
    kind: 'append',
    element,
    length,
    beganAt,
    endedAt,
  })
  const seen = (elements: readonly string[], beganAt: number): ListCall => ({
    kind: 'read',
    elements,
    beganAt,
    endedAt: beganAt + 1,
  })

  it('is accepted when the answers tell one order', () => {
    const unknown = append('c', undefined, 3, Number.POSITIVE_INFINITY)
    const begin = [append('a', 1, 0, 4), append('b', 2, 1, 3), unknown]
    expect(listBreach([...begin, seen(['a', 'b'], 5)])).toBeUndefined()
    expect(listBreach([...begin, seen(['a', 'b'], 5), seen(['a', 'b', 'c'], 7)])).toBeUndefined()
  })

  it('is refused when something is lost, doubled, moved, from nowhere, or goes back in time', () => {
    const [a, b] = [append('a', 1, 0, 1), append('b', 2, 2, 3)]
    expect(listBreach([a, b, seen(['a'], 4)])).toMatch(/saw 1 elements, an earlier one 2/)
    expect(listBreach([a, b, seen(['a', 'b', 'a'], 4)])).toBe('an element is twice in the list')
    expect(listBreach([a, b, seen(['a'], 4), seen(['b', 'a'], 6)])).toMatch(/began with/)
    expect(listBreach([a, append('b', 1, 2, 3), seen(['a', 'b'], 4)])).toMatch(/appended as number 1, where a is/)
    expect(listBreach([a, seen(['a', 'x'], 4)])).toBe('x is in the list, and nobody appended it')
    expect(listBreach([a, append('b', 1, 2, 3)])).toMatch(/saw 1 elements, an earlier one 1/)
  })
})
