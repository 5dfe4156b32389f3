import { ReplyFramer } from './reply-framer.js'

const STAR = 0x2a
const CR = 13

/** The elements of an array, each as an encoded reply; undefined when the reply is no array. */
export function elementsOf(reply: Buffer): readonly Buffer[] | undefined {
  const headEnd = reply.indexOf(CR)
  const count = Number(reply.toString('latin1', 1, headEnd))
  if (reply[0] !== STAR || count < 0) return undefined
  const framer = new ReplyFramer()
  const elements: Buffer[] = []
  for (let at = headEnd + 2; elements.length < count; ) {
    const end = framer.scan(reply, at, 1)
    elements.push(reply.subarray(at, end))
    at = end
  }
  return elements
}
