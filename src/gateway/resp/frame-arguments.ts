const LF = 10
const CR = 13
const ZERO = 48
/** The line end of a header, and that behind the argument. */
const HEADER_AND_LINE_END_BYTES = 4

/** The arguments of a whole frame, name first, as views of the frame. */
export function frameArguments(frame: Buffer, start: number, count: number): readonly Buffer[] {
  const args: Buffer[] = []
  let at = frame.indexOf('\r\n', start) + 2
  for (let i = 0; i < count; i++) {
    const headerEnd = frame.indexOf('\r\n', at)
    const length = Number(frame.toString('latin1', at + 1, headerEnd))
    args.push(frame.subarray(headerEnd + 2, headerEnd + 2 + length))
    at = headerEnd + length + 4
  }
  return args
}

/** Length of the longest argument of a whole frame, bytes; without making anything of the others. */
export function longestArgumentBytes(frame: Buffer, start: number, count: number): number {
  let longest = 0
  let at = frame.indexOf(LF, start) + 1
  for (let i = 0; i < count; i++) {
    let length = 0
    for (at++; frame[at] !== CR; at++) length = 10 * length + (frame[at] ?? ZERO) - ZERO
    longest = Math.max(longest, length)
    at += length + HEADER_AND_LINE_END_BYTES
  }
  return longest
}
