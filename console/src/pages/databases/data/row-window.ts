/**
 * Computes which rows of a long list are on the screen. All rows have the same height, so rows need not be measured.
 * Browsers limit the height of an element to some millions of pixels. So in a longer list, each pixel of the scroll bar
 * passes more rows.
 */

/** Height of the highest element that every browser supports. The limit of Firefox is 17.8 million. */
const MAX_PIXELS = 15_000_000
/** Rows that are rendered beyond both edges. */
const OVERSCAN = 6

/** The visible part of a list. Lengths are pixels. */
export interface RowWindow {
  /** The height of the element that scrolls. */
  readonly height: number
  /** The first rendered row, and the row after the last rendered one. */
  readonly first: number
  readonly end: number
  /** The position of the first rendered row in that element. */
  readonly top: number
}

/** The window at a scroll position. */
export function windowAt(scrollTop: number, viewHeight: number, rowHeight: number, count: number): RowWindow {
  const whole = count * rowHeight
  const height = Math.min(whole, MAX_PIXELS)
  const offset = scrollTop * scaleOf(whole, height, viewHeight)
  const first = Math.max(0, Math.min(count, Math.floor(offset / rowHeight)) - OVERSCAN)
  const end = Math.min(count, Math.ceil((offset + viewHeight) / rowHeight) + OVERSCAN)
  return { height, first, end, top: scrollTop + first * rowHeight - offset }
}

/** The scroll position that shows a row: unchanged if the row is visible, else with the row at the nearer edge. */
export function scrolledTo(
  index: number,
  scrollTop: number,
  viewHeight: number,
  rowHeight: number,
  count: number,
): number {
  const whole = count * rowHeight
  const scale = scaleOf(whole, Math.min(whole, MAX_PIXELS), viewHeight)
  const offset = scrollTop * scale
  const top = index * rowHeight
  if (top < offset) return top / scale
  return top + rowHeight > offset + viewHeight ? (top + rowHeight - viewHeight) / scale : scrollTop
}

/** How many pixels of rows one pixel of scrolling passes. */
function scaleOf(whole: number, height: number, viewHeight: number): number {
  return height > viewHeight ? Math.max(1, (whole - viewHeight) / (height - viewHeight)) : 1
}
