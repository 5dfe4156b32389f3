import { printable } from '../terminal/text.js'

/** The reply of a command: texts are bytes, because values of databases are. */
export type Reply = Buffer | number | boolean | null | readonly Reply[]

/** Reads a reply that came as JSON with its texts in base64; the status `OK` is never encoded. */
export function readReply(value: unknown): Reply {
  if (typeof value === 'string') return value === 'OK' ? Buffer.from(value) : Buffer.from(value, 'base64')
  if (Array.isArray(value)) return value.map(readReply)
  if (typeof value === 'number' || typeof value === 'boolean') return value
  return null
}

/** Whether a reply is one text. */
export const isText = (reply: Reply): reply is Buffer => Buffer.isBuffer(reply)

/** A reply as JSON; bytes that are no UTF-8 read `base64:…`. */
export function toJson(reply: Reply): unknown {
  if (isText(reply)) return textOf(reply) ?? `base64:${reply.toString('base64')}`
  return isList(reply) ? reply.map(toJson) : reply
}

/** A reply for a person: one value a line, lists numbered, and lists in lists indented. */
export function renderReply(reply: Reply, indent = ''): string {
  if (!isList(reply)) return `${scalar(reply)}\n`
  if (reply.length === 0) return '(empty list)\n'
  const width = String(reply.length).length
  return reply
    .map((one, index) => {
      const label = `${String(index + 1).padStart(width)}) `
      const inner = renderReply(one, indent + ' '.repeat(label.length))
      return (index === 0 ? '' : indent) + label + inner
    })
    .join('')
}

const isList = (reply: Reply): reply is readonly Reply[] => Array.isArray(reply)

function scalar(reply: Exclude<Reply, readonly Reply[]>): string {
  if (reply === null) return '(nil)'
  if (typeof reply === 'number') return `(integer) ${reply}`
  if (typeof reply === 'boolean') return String(reply)
  const text = textOf(reply)
  return text === undefined ? `(${reply.length} bytes, no UTF-8) base64:${reply.toString('base64')}` : printable(text)
}

function textOf(bytes: Buffer): string | undefined {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? text : undefined
}
