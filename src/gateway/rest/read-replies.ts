import { HomeportError } from '../../contract/errors.js'
import { errorText } from '../error-text.js'
import { encodeError } from '../resp/encode.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import { type ReplyEncoding, ReplyReader, type RestReply } from './reply-reader.js'
import { isPrepared, type Slot } from './slots.js'

/** Reads the replies of a pipeline, each into its slot. */
export function readReplies(slots: readonly Slot[], replies: Buffer, encoding: ReplyEncoding): readonly RestReply[] {
  const reader = new ReplyReader(replies, encoding)
  return slots.map((slot) => (isPrepared(slot) ? reader.next() : { error: errorText(slot) }))
}

/** The bytes of the replies of a pipeline, one for each slot. */
export function replyBytes(slots: readonly Slot[], replies: Buffer): Buffer {
  if (slots.every(isPrepared)) return replies
  const framer = new ReplyFramer()
  const parts: Buffer[] = []
  let at = 0
  for (const slot of slots) {
    if (slot instanceof HomeportError) {
      parts.push(encodeError(errorText(slot)))
      continue
    }
    const end = framer.scan(replies, at, 1)
    parts.push(replies.subarray(at, end))
    at = end
  }
  return Buffer.concat(parts)
}
