import { CollectedReplies } from './collect-reply.js'
import type { EngineLink } from './engine-link.js'
import { type Greeting, greetingCommand, type LinkIdentity, readGreeting } from './greeting.js'
import type { PinnedStream } from './pinned-stream.js'

/**
 * Tells an engine whom a connection speaks for from now on, and in which version of the protocol. What it watches, has
 * subscribed to or tracks stays. Only where everything sent has been answered.
 * @returns the engine's answer; undefined when it refuses, or is lost.
 */
export function introduce(
  link: EngineLink,
  stream: PinnedStream | undefined,
  identity: LinkIdentity,
): Promise<Greeting | undefined> {
  const command = greetingCommand(identity)
  if (stream) {
    const greeted = stream.greeted(identity.protocol)
    const bytes = Buffer.from(command)
    link.sendStreamed(bytes, 0, bytes.length)
    return greeted
  }
  return new Promise((resolve) => {
    const answered = (reply: Buffer): void => resolve(readGreeting(reply))
    link.sendText(new CollectedReplies(1, answered, () => resolve(undefined)), command, 1)
  })
}
