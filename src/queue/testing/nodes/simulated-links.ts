import type { ClusteredDeps } from '../../../cluster/index.js'
import type { PeerLink } from '../../../cluster/peer-link.js'
import type { Network } from './network.js'
import type { Process, Timeline } from './timeline.js'

type How = Parameters<ClusteredDeps['link']>[0]

interface End {
  readonly process: Process
  readonly how: How
}

/** Returns the node that a call reaches: the intended one, or another. */
export type Redirect = <Node>(topic: string, to: Node, all: readonly Node[]) => Node

/** Links between the nodes: calls take time and get lost. A process that is over or paused does not answer. */
export class SimulatedLinks {
  readonly #timeline: Timeline
  readonly #network: Network
  readonly #redirect: Redirect
  readonly #ends = new Set<End>()
  #port = 0

  constructor(timeline: Timeline, network: Network, redirect: Redirect = (_, to) => to) {
    this.#timeline = timeline
    this.#network = network
    this.#redirect = redirect
  }

  /** Makes the link of a process. */
  for(process: Process): (how: How) => PeerLink {
    return (how) => {
      const end: End = { process, how }
      return {
        name: 'peer link',
        port: ++this.#port,
        start: async () => void this.#ends.add(end),
        stop: async () => void this.#ends.delete(end),
        tunnel: () => Promise.reject(new Error('no tunnels')),
        request: ({ incarnation }, topic, payload, timeoutMs) =>
          this.#request(end, incarnation, { topic, payload, timeoutMs }),
      }
    }
  }

  #request(
    from: End,
    incarnation: number,
    { topic, payload, timeoutMs }: { topic: string; payload: unknown; timeoutMs: number },
  ): Promise<unknown> {
    const timeline = this.#timeline
    const meant = [...this.#ends].find((end) => end.how.incarnation() === incarnation && !end.process.isOver)
    if (!meant) return Promise.reject(new Error('no such node'))
    const others = [...this.#ends].filter((end) => end !== from && !end.process.isOver)
    const to = this.#redirect(topic, meant, others)
    const fate = this.#network.toPeer(from.process, to.process)
    const text = JSON.stringify(payload ?? null)
    return new Promise((resolve, reject) => {
      timeline.after(timeoutMs, () => reject(new Error('no answer in time')), from.process)
      if (fate.kind !== 'ok') timeline.note(`${from.process.name}: ${topic} to ${to.process.name} gets lost`)
      const effect = fate.kind === 'ok' ? fate.there : fate.kind === 'unanswered' ? fate.effect : undefined
      if (effect === undefined) return
      timeline.after(
        effect,
        () => {
          const request = { topic, payload: JSON.parse(text) as unknown, from: from.how.incarnation() }
          const answer = to.how.onRequest(request)
          if (fate.kind !== 'ok') return void answer.catch(() => undefined)
          const back = (run: () => void): void => {
            if (!this.#network.isCut(to.process, from.process)) timeline.after(fate.back, run, from.process)
          }
          answer.then(
            (value) => back(() => resolve(JSON.parse(JSON.stringify(value ?? null)))),
            (error: unknown) => back(() => reject(error)),
          )
        },
        to.process,
      )
    })
  }
}
