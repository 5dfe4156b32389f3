import { describe, expect, it } from 'vitest'
import { scrolledTo, windowAt } from './row-window.js'

const ROW = 34
const VIEW = 340

describe('a short list', () => {
  it('renders the rows on the screen, and some beyond', () => {
    expect(windowAt(0, VIEW, ROW, 1_000)).toEqual({ height: 34_000, first: 0, end: 16, top: 0 })
    expect(windowAt(3_400, VIEW, ROW, 1_000)).toEqual({ height: 34_000, first: 94, end: 116, top: 94 * ROW })
    expect(windowAt(0, VIEW, ROW, 3)).toEqual({ height: 102, first: 0, end: 3, top: 0 })
    expect(windowAt(0, VIEW, ROW, 0)).toEqual({ height: 0, first: 0, end: 0, top: 0 })
  })

  it('scrolls to a row only if it is not visible, to the nearer edge', () => {
    expect(scrolledTo(5, 0, VIEW, ROW, 1_000)).toBe(0)
    expect(scrolledTo(10, 0, VIEW, ROW, 1_000)).toBe(ROW)
    expect(scrolledTo(2, 340, VIEW, ROW, 1_000)).toBe(2 * ROW)
  })
})

describe('a list of a million keys', () => {
  const COUNT = 1_000_000
  const { height } = windowAt(0, VIEW, ROW, COUNT)

  it('is no higher than browsers lay out, and its last row can be reached', () => {
    expect(height).toBeLessThan(17_000_000)
    const last = windowAt(height - VIEW, VIEW, ROW, COUNT)
    expect(last.end).toBe(COUNT)
    // The last row ends where the view ends.
    expect(last.top + (COUNT - last.first) * ROW).toBeCloseTo(height, 3)
  })

  it.each([0, 1, 499_999, 999_999])('row %d is on the screen once it was scrolled to', (index) => {
    const scrollTop = scrolledTo(index, 7_000_000, VIEW, ROW, COUNT)
    const seen = windowAt(scrollTop, VIEW, ROW, COUNT)
    const top = seen.top + (index - seen.first) * ROW - scrollTop
    expect(top).toBeGreaterThan(-0.01)
    expect(top + ROW).toBeLessThan(VIEW + 0.01)
  })
})
