import type { IncomingHttpHeaders } from 'node:http'
import { HomeportError } from '../../contract/errors/errors.js'
import type { ReplyEncoding } from './reply-reader.js'

/** How a client wants to be answered (reference redis 4.2). */
export interface ReplyForm {
  readonly format: 'json' | 'resp2'
  readonly encoding: ReplyEncoding
}

const PLAIN: ReplyForm = { format: 'json', encoding: 'plain' }
const BASE64: ReplyForm = { format: 'json', encoding: 'base64' }
const RESP2: ReplyForm = { format: 'resp2', encoding: 'plain' }

/** Reads the form from the headers of a request. @throws HomeportError */
export function replyFormOf(headers: IncomingHttpHeaders): ReplyForm {
  const { 'upstash-encoding': encoding, 'upstash-response-format': format = 'json' } = headers
  if (format === 'json') return encoding === 'base64' ? BASE64 : PLAIN
  if (format !== 'resp2')
    throw malformed(`unknown response format '${String(format).slice(0, 64)}'. Use json or resp2.`)
  if (encoding === 'base64') throw malformed('the response format resp2 cannot be combined with base64 encoding')
  return RESP2
}

function malformed(problem: string): HomeportError {
  return new HomeportError('command_malformed', { problem })
}
