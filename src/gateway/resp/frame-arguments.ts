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

/** Length of the longest argument of a whole frame, bytes; without making anything of the others. */
export function longestArgumentBytes(frame: Buffer, start: number, count: number): number {
  let longest = 0
  eachArgument(frame, start, count, (from, to) => {
    longest = Math.max(longest, to - from)
  })
  return longest
}

/** Tells where each argument stands. A frame may have a million of them, so nothing is made of their headers. */
function eachArgument(frame: Buffer, start: number, count: number, tell: (from: number, to: number) => void): void {
  let at = frame.indexOf(LF, start) + 1
  for (let i = 0; i < count; i++) {
    let length = 0
    for (at++; frame[at] !== CR; at++) length = 10 * length + (frame[at] ?? ZERO) - ZERO
    const from = at + LINE_END_BYTES
    tell(from, from + length)
    at = from + length + LINE_END_BYTES
  }
}
