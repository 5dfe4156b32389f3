/** Replies of the engine in RESP2, which keeps what JSON loses: binary data and the type of the reply. */

/** A reply. Bulk strings stay bytes. */
export type Reply =
  | { readonly kind: 'status'; readonly text: string }
  | { readonly kind: 'error'; readonly text: string }
  /** As text: integers of the engine have 64 bits. */
  | { readonly kind: 'integer'; readonly text: string }
  | { readonly kind: 'bulk'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'nil' }
  | { readonly kind: 'list'; readonly items: readonly Reply[] }

const latin = new TextDecoder('latin1')
const utf8 = new TextDecoder()

/** Reads all replies of a body, in order. */
export function parseReplies(body: Uint8Array<ArrayBuffer>): Reply[] {
  const reader = new Reader(body)
  const replies: Reply[] = []
  while (!reader.isAtEnd()) replies.push(reader.reply())
  return replies
}

class Reader {
  readonly #body: Uint8Array<ArrayBuffer>
  #at = 0

  constructor(body: Uint8Array<ArrayBuffer>) {
    this.#body = body
  }

  isAtEnd(): boolean {
    return this.#at >= this.#body.length
  }

  reply(): Reply {
    const line = this.#line()
    const rest = line.slice(1)
    switch (line[0]) {
      case '+':
        return { kind: 'status', text: rest }
      case '-':
        return { kind: 'error', text: rest }
      case ':':
        return { kind: 'integer', text: rest }
      case '$':
        return rest === '-1' ? { kind: 'nil' } : { kind: 'bulk', bytes: this.#bytes(Number(rest)) }
      case '*':
        return rest === '-1'
          ? { kind: 'nil' }
          : { kind: 'list', items: Array.from({ length: Number(rest) }, () => this.reply()) }
      default:
        throw new Error('the reply of the database is not RESP2')
    }
  }

  #line(): string {
    const end = this.#body.indexOf(13, this.#at)
    if (end < 0) throw new Error('the reply of the database is incomplete')
    const line = this.#body.subarray(this.#at, end)
    this.#at = end + 2
    // Errors and statuses may quote UTF-8 text of the command.
    return line[0] === 45 || line[0] === 43 ? utf8.decode(line) : latin.decode(line)
  }

  #bytes(length: number): Uint8Array<ArrayBuffer> {
    const bytes = this.#body.slice(this.#at, this.#at + length)
    this.#at += length + 2
    return bytes
  }
}

/** A reply as one text: the characters of a bulk string, the digits of an integer; empty for nil and lists. */
export function textOf(reply: Reply | undefined): string {
  if (reply === undefined || reply.kind === 'nil' || reply.kind === 'list') return ''
  return reply.kind === 'bulk' ? utf8.decode(reply.bytes) : reply.text
}

/** The items of a list; none for everything else. */
export const itemsOf = (reply: Reply | undefined): readonly Reply[] => (reply?.kind === 'list' ? reply.items : [])

/** A list of keys and values, two by two. */
export function pairsOf(reply: Reply | undefined): [Reply, Reply][] {
  const items = itemsOf(reply)
  const pairs: [Reply, Reply][] = []
  for (let i = 0; i + 1 < items.length; i += 2) {
    const [name, value] = [items[i], items[i + 1]]
    if (name && value) pairs.push([name, value])
  }
  return pairs
}

/** Commands whose reply is a text for people, which `redis-cli` prints unquoted. */
const TEXTS = /^(info|lolwut|client (list|info)|memory (doctor|malloc-stats)|latency (doctor|graph))( |$)/i

/** The reply to a command as `redis-cli` prints it. */
export function printAnswer(words: readonly string[], reply: Reply): string {
  if (reply.kind !== 'bulk' || !TEXTS.test(words.slice(0, 2).join(' '))) return printReply(reply)
  return textOf(reply).replaceAll('\r\n', '\n').trimEnd()
}

/** A reply, without regard to its command, as `redis-cli` prints it. */
export function printReply(reply: Reply, indent = ''): string {
  switch (reply.kind) {
    case 'status':
      return reply.text
    case 'error':
      return `(error) ${reply.text}`
    case 'integer':
      return `(integer) ${reply.text}`
    case 'nil':
      return '(nil)'
    case 'bulk':
      return quoted(reply.bytes)
    case 'list':
      return printList(reply.items, indent)
  }
}

function printList(items: readonly Reply[], indent: string): string {
  if (items.length === 0) return '(empty list)'
  const width = String(items.length).length
  const inner = `${indent}${' '.repeat(width + 2)}`
  return items
    .map((item, i) => `${i === 0 ? '' : indent}${String(i + 1).padStart(width)}) ${printReply(item, inner)}`)
    .join('\n')
}

// Without `ignoreBOM`, a text that begins with a byte order mark would be shown, and written back, without it.
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Bytes as UTF-8 text; `undefined` if they are not valid UTF-8. */
export function strictText(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes)
  } catch {
    return undefined
  }
}

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '"': '\\"', '\\': '\\\\' }

/** Bytes in quotes; unprintable characters are escaped. */
function quoted(bytes: Uint8Array): string {
  return `"${escaped(bytes)}"`
}

/** Bytes on one line; unprintable characters are escaped. */
export function escaped(bytes: Uint8Array): string {
  const text = strictText(bytes)
  if (text === undefined)
    return [...bytes].map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : hexOf(byte))).join('')
  return text
    .replace(/[\n\r\t"\\]/g, (character) => ESCAPES[character] ?? character)
    .replace(/[\u0000-\u001f\u007f]/g, (character) => hexOf(character.charCodeAt(0)))
}

const hexOf = (byte: number): string => `\\x${byte.toString(16).padStart(2, '0')}`
