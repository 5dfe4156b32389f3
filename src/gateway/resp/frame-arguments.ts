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
