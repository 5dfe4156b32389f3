/** An argument of a command; text is sent as UTF-8. */
export type Argument = string | Buffer

/** A command as the engine reads it: an array of bulk strings. */
export function encodeCommand(args: readonly Argument[]): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${args.length}\r\n`)]
  for (const arg of args) {
    const bytes = typeof arg === 'string' ? Buffer.from(arg) : arg
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, CRLF)
  }
  return Buffer.concat(parts)
}

/** A command with text arguments only, as text that has to be sent as UTF-8. */
export function encodeTextCommand(args: readonly string[]): string {
  let text = `*${args.length}\r\n`
  for (const arg of args) text += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`
  return text
}

/** A command whose arguments are bytes, given as latin1 characters. */
export function encodeLatin1Command(args: readonly string[]): Buffer {
  let text = `*${args.length}\r\n`
  for (const arg of args) text += `$${arg.length}\r\n${arg}\r\n`
  return Buffer.from(text, 'latin1')
}

/** `+text`. The text must not contain line breaks. */
export function encodeSimple(text: string): Buffer {
  return Buffer.from(`+${text}\r\n`)
}

/** `-text`, with spaces in place of line breaks. */
export function encodeError(text: string): Buffer {
  return Buffer.from(`-${text.replace(/[\r\n]+/g, ' ')}\r\n`)
}

/** `:number`. */
export function encodeInteger(value: number): Buffer {
  return Buffer.from(`:${value}\r\n`)
}

/** A bulk string. */
export function encodeBulk(value: Argument): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, CRLF])
}

/** Text for people: a verbatim string in RESP3, a bulk string in RESP2. */
export function encodeVerbatim(protocol: 2 | 3, text: string): Buffer {
  if (protocol === 2) return encodeBulk(text)
  return Buffer.from(`=${Buffer.byteLength(text) + 4}\r\ntxt:${text}\r\n`)
}

/** "No value" in the given protocol version. */
export function encodeNull(protocol: 2 | 3): Buffer {
  return Buffer.from(protocol === 3 ? '_\r\n' : '$-1\r\n')
}

/** Encoded elements as one array. */
export function encodeArray(elements: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from(`*${elements.length}\r\n`), ...elements])
}

/** Encoded elements as a set, which RESP2 writes as an array. */
export function encodeSet(protocol: 2 | 3, elements: readonly Buffer[]): Buffer {
  return Buffer.concat([Buffer.from(`${protocol === 3 ? '~' : '*'}${elements.length}\r\n`), ...elements])
}

/** Encoded keys and values as a map, which RESP2 writes as a flat array. */
export function encodeMap(protocol: 2 | 3, entries: readonly (readonly [Buffer, Buffer])[]): Buffer {
  const header = protocol === 3 ? `%${entries.length}\r\n` : `*${entries.length * 2}\r\n`
  return Buffer.concat([Buffer.from(header), ...entries.flat()])
}

const CRLF = Buffer.from('\r\n')
