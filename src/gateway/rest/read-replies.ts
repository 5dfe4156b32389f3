import { HomeportError } from '../../contract/errors.js'
import { errorText } from '../error-text.js'
import { filterInfoReply } from '../info-filter.js'
import { encodeError } from '../resp/encode.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import type { PreparedCommand } from './prepare.js'
import { type ReplyEncoding, ReplyReader, type RestReply } from './reply-reader.js'
import { isPrepared, type Slot } from './slots.js'

/** Reads the replies of a pipeline, each into its slot. */
export function readReplies(slots: readonly Slot[], replies: Buffer, encoding: ReplyEncoding): readonly RestReply[] {
  const shown = slots.some(isFiltered) ? replyBytes(slots, replies, 'without-errors') : replies
  const reader = new ReplyReader(shown, encoding)
  return slots.map((slot) => (isPrepared(slot) ? reader.next() : { error: errorText(slot) }))
}

/** The bytes of the replies of a pipeline, one for each slot. */
export function replyBytes(
  slots: readonly Slot[],
  replies: Buffer,
  errors: 'with-errors' | 'without-errors' = 'with-errors',
): Buffer {
  if (slots.every((slot) => isPrepared(slot) && !slot.filtered)) return replies
  const framer = new ReplyFramer()
  const parts: Buffer[] = []
  let at = 0
  for (const slot of slots) {
    if (slot instanceof HomeportError) {
      if (errors === 'with-errors') parts.push(encodeError(errorText(slot)))
      continue
    }
    const end = framer.scan(replies, at, 1)
    parts.push(changeOf(slot)(replies.subarray(at, end)))
    at = end
  }
  return Buffer.concat(parts)
}

/** What is done to the reply of a command before anybody sees it. */
export function changeOf({ filtered, args }: PreparedCommand): (reply: Buffer) => Buffer {
  return filtered ? (reply) => filterInfoReply(reply, args[1]?.toString()) : (reply) => reply
}

/** Whether the reply of a slot tells about the host. */
export function isFiltered(slot: Slot): slot is PreparedCommand {
  return isPrepared(slot) && slot.filtered
}
