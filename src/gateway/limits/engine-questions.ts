import type { HomeportError } from '../../contract/errors/errors.js'
import type { EngineLink } from '../engine/engine-link.js'
import { CollectedReplies } from '../engine/reply-sink.js'
import { errorOfUnsent } from '../engine/unsent.js'

/**
 * Sends a command of the gateway to the engine. Resolves to the bytes of the reply, rejects when the engine is lost. The
 * client's command that the question is about was not sent then, and the error says so.
 */
export type AskEngine = (command: Buffer) => Promise<Buffer>

/** Makes a function that asks over a link, after everything that was sent on the link. */
export function askOver(link: EngineLink): AskEngine {
  return (command) =>
    new Promise((resolve, reject: (error: HomeportError) => void) => {
      const lost = (error: HomeportError): void => reject(errorOfUnsent(error))
      link.send(new CollectedReplies(1, resolve, lost), command, 0, command.length, 1)
    })
}

/** Reads `:123`; anything else, such as "no such key" or an error, is 0. */
export function integerReply(reply: Buffer): number {
  return Number(/^:(\d{1,16})\r\n$/.exec(reply.toString('latin1'))?.[1] ?? 0)
}

/** Reads the text of a bulk string; an error is empty. */
export function textReply(reply: Buffer): string {
  const text = reply.toString('latin1')
  return /^[$=]\d+\r\n/.test(text) ? text.slice(text.indexOf('\r\n') + 2, -2) : ''
}
