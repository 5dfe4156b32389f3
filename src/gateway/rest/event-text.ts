/** What a frame of a stream is to its client: the text of an event, or of the error that ends it. */
export interface EventText {
  readonly kind: 'event' | 'error'
  readonly text: string
}

const LF = 10
const MINUS = 0x2d
const PLUS = 0x2b
const DOLLAR = 0x24
const STAR = 0x2a

/**
 * Reads a frame of a subscription or of MONITOR. The fields of a list are joined by commas; what is not a list is a line
 * of MONITOR. An event has no place for line breaks. Payloads are taken as they are: a message may have many megabytes.
 */
export function eventText(frame: Buffer): EventText {
  const lineEnd = frame.indexOf(LF)
  const line = frame.toString('utf8', 1, lineEnd - 1)
  switch (frame[0]) {
    case MINUS:
      return { kind: 'error', text: line }
    case PLUS:
      return { kind: 'event', text: line === 'OK' ? '"OK"' : line }
    case STAR:
      return {
        kind: 'event',
        text: fieldsOf(frame, lineEnd + 1, Number(line))
          .join(',')
          .replace(/[\r\n]+/g, ' '),
      }
    default:
      return { kind: 'event', text: line }
  }
}

/** The fields of a list, of which none is a list itself. */
function fieldsOf(frame: Buffer, start: number, count: number): readonly string[] {
  const fields: string[] = []
  for (let at = start; fields.length < count && at < frame.length; ) {
    const lineEnd = frame.indexOf(LF, at)
    const line = frame.toString('utf8', at + 1, lineEnd - 1)
    const isBulk = frame[at] === DOLLAR
    at = lineEnd + 1
    if (!isBulk) fields.push(line)
    else if (line.startsWith('-')) fields.push('')
    else {
      fields.push(frame.toString('utf8', at, at + Number(line)))
      at += Number(line) + 2
    }
  }
  return fields
}
