import { Agent, request } from 'undici'
import type { FrontJob } from './publish-front.js'

/** Delivers jobs over HTTP with this many connections, for the workers of the peers. */
export function deliverer(connections: number): (job: FrontJob) => Promise<void> {
  const dispatcher = new Agent({ connections, pipelining: 1 })
  return async ({ target, body }) => {
    const headers = { 'content-type': 'application/json' }
    const answer = await request(target, { method: 'POST', body, dispatcher, headers })
    await answer.body.dump()
    if (answer.statusCode > 299) throw new Error(`status ${answer.statusCode}`)
  }
}
