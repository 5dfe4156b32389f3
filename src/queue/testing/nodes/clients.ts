import type { Endpoint } from '../../../contract/endpoint.js'
import { isReply } from '../../../http/index.js'
import type { SimulatedNode } from './simulated-node.js'
import type { Stage } from './stage.js'

/** A client has given up waiting: its node was killed or paused, or there was none. */
export class NoAnswer extends Error {}

/** The longest time that a request takes to reach a node. */
const MAX_WAY_MS = 12

/** Clients of a cluster behind a load balancer: each request reaches a random node that serves. */
export class Clients {
  readonly #stage: Pick<Stage, 'timeline' | 'nodes'>

  constructor(stage: Pick<Stage, 'timeline' | 'nodes'>) {
    this.#stage = stage
  }

  /**
   * Calls an operation. Resolves with the value of the response.
   * @throws the error of the operation, or `NoAnswer`.
   */
  ask(endpoint: Endpoint, request: Parameters<SimulatedNode['call']>[1], timeoutMs = 8_000): Promise<unknown> {
    const { timeline, nodes } = this.#stage
    const node = timeline.random.pick(nodes().filter(({ phase }) => phase === 'open' || phase === 'draining'))
    return new Promise((resolve, reject) => {
      timeline.after(timeoutMs, () => reject(new NoAnswer(`no answer to ${endpoint.path}`)))
      if (!node) return
      const arrive = async (): Promise<void> => {
        try {
          const answer = await node.call(endpoint, request)
          resolve(isReply(answer) ? answer.value : answer)
        } catch (error) {
          reject(error)
        }
      }
      timeline.after(timeline.between(1, MAX_WAY_MS), () => void arrive(), node.process)
    })
  }
}
