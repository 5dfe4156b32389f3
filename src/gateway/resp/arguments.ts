const LF = 10
const CR = 13
const ZERO = 48
const LINE_END_BYTES = 2

/** The arguments of a whole frame, name first, as views of the frame. */
export function frameArguments(frame: Buffer, start: number, count: number): readonly Buffer[] {
  const args: Buffer[] = []
  eachArgument(frame, start, count, (from, to) => args.push(frame.subarray(from, to)))
  return args
}

/** Length of the longest argument of a whole frame, bytes. Allocates nothing. */
export function longestArgumentBytes(frame: Buffer, start: number, count: number): number {
  let longest = 0
  eachArgument(frame, start, count, (from, to) => {
    longest = Math.max(longest, to - from)
  })
  return longest
}

/** Visits the position of each argument. Allocates nothing for them: a frame may have a million. */
function eachArgument(frame: Buffer, start: number, count: number, visit: (from: number, to: number) => void): void {
  let at = frame.indexOf(LF, start) + 1
  for (let i = 0; i < count; i++) {
    let length = 0
    for (at++; frame[at] !== CR; at++) length = 10 * length + (frame[at] ?? ZERO) - ZERO
    const from = at + LINE_END_BYTES
    visit(from, from + length)
    at = from + length + LINE_END_BYTES
  }
}

const WHOLE_NUMBER = /^(?:0|-?[1-9]\d{0,18})$/
const LARGEST = 2n ** 63n - 1n
const SMALLEST = -(2n ** 63n)

/**
 * Reads an integer as an engine does: no sign but a minus, no zeros in front, no spaces, within 64 bits. Undefined for
 * everything else; beyond 2^53 the number is not exact.
 */
export function wholeNumber(text: string): number | undefined {
  if (!WHOLE_NUMBER.test(text)) return undefined
  const exact = BigInt(text)
  return exact >= SMALLEST && exact <= LARGEST ? Number(exact) : undefined
}
