import { nextTurn } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { errorText } from '../error-text.js'
import { encodeError } from '../resp/encode.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import { joinInTurns, PatientReader, READ_AT_ONCE_BYTES } from './in-turns.js'
import { type ReplyEncoding, ReplyReader, type RestReply } from './reply-reader.js'
import { isPrepared, type Slot } from './slots.js'

/** Reads the replies of a pipeline, each into its slot. */
export function readReplies(slots: readonly Slot[], replies: Buffer, encoding: ReplyEncoding): readonly RestReply[] {
  const reader = new ReplyReader(replies, encoding)
  return slots.map((slot) => (isPrepared(slot) ? reader.next() : { error: errorText(slot) }))
}

/** The same of any number of replies, which are not lent, in slices between which others are served. */
export async function* readRepliesInTurns(
  slots: readonly Slot[],
  replies: Buffer,
  encoding: ReplyEncoding,
): AsyncGenerator<RestReply> {
  const reader = new PatientReader(new ReplyReader(replies, encoding))
  for (const slot of slots) yield isPrepared(slot) ? await reader.next() : { error: errorText(slot) }
}

/** The bytes of the replies of a pipeline, one for each slot. */
export function replyBytes(slots: readonly Slot[], replies: Buffer): Buffer {
  return slots.every(isPrepared) ? replies : Buffer.concat([...replyParts(slots, replies)])
}

/** The same of any number of replies, which are not lent, in slices between which others are served. */
export async function replyBytesInTurns(slots: readonly Slot[], replies: Buffer): Promise<Buffer> {
  if (slots.every(isPrepared)) return replies
  const parts: Buffer[] = []
  let readBytes = 0
  for (const part of replyParts(slots, replies)) {
    parts.push(part)
    readBytes += part.length
    if (readBytes < READ_AT_ONCE_BYTES) continue
    readBytes = 0
    await nextTurn()
  }
  return joinInTurns(parts)
}

function* replyParts(slots: readonly Slot[], replies: Buffer): Generator<Buffer> {
  const framer = new ReplyFramer()
  let at = 0
  for (const slot of slots) {
    if (slot instanceof HomeportError) {
      yield encodeError(errorText(slot))
      continue
    }
    const end = framer.scan(replies, at, 1)
    yield replies.subarray(at, end)
    at = end
  }
}
