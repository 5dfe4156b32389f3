import { ReplyFramer } from './reply-framer.js'

const STAR = 0x2a
const CR = 13

/** The number of elements of an array; undefined when the reply is no array. */
export function arrayLength(reply: Buffer): number | undefined {
  const count = Number(reply.toString('latin1', 1, reply.indexOf(CR)))
  return reply[0] !== STAR || count < 0 ? undefined : count
}

/** The elements of an array, each as an encoded reply; undefined when the reply is no array. */
export function elementsOf(reply: Buffer): readonly Buffer[] | undefined {
  const count = arrayLength(reply)
  if (count === undefined) return undefined
  const framer = new ReplyFramer()
  const elements: Buffer[] = []
  for (let at = reply.indexOf(CR) + 2; elements.length < count; ) {
    const end = framer.scan(reply, at, 1)
    elements.push(reply.subarray(at, end))
    at = end
  }
  return elements
}
