import { Agent, createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { NodeScene, SceneNode } from '../../test/crash/nodes.js'
import { Senders } from '../../test/crash/senders.js'

const TICK_MS = 20
/** A destination answers after this time. */
const WORK_MS = 20

/** A published message. */
export interface Sent {
  readonly acceptedAt: number
  /** From the request to its answer. */
  readonly publishMs: number
  arrivals: number
  firstAt: number
}

/** Publishes through the ready nodes in turn, and receives the messages. */
export class NodeLoad {
  readonly messages = new Map<string, Sent>()
  /** Arrivals of messages that had arrived before, in order of time. */
  readonly again: { readonly id: string; readonly at: number }[] = []
  failed = 0
  readonly #early = new Map<string, number>()
  /** Which processes send the messages (Linux only). */
  readonly senders: Senders
  readonly #scene: NodeScene
  readonly #sink: Server
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 200 })
  #url = ''
  #made = 0
  #isOver = false
  #publishing: Promise<unknown> = Promise.resolve()

  private constructor(scene: NodeScene) {
    this.#scene = scene
    this.senders = new Senders(() => scene.pids)
    this.#sink = createServer((incoming, outgoing) => {
      if (process.platform === 'linux') this.senders.received(incoming.socket)
      incoming.resume().on('end', () => {
        this.#arrive((incoming.url ?? '/').slice(1))
        setTimeout(() => outgoing.end('ok'), WORK_MS)
      })
    })
  }

  static async start(scene: NodeScene): Promise<NodeLoad> {
    const load = new NodeLoad(scene)
    await new Promise<void>((resolve) => load.#sink.listen(0, '127.0.0.1', resolve))
    load.senders.start(() => scene.storeUrl)
    load.#url = `http://127.0.0.1:${(load.#sink.address() as AddressInfo).port}`
    return load
  }

  #arrive(id: string): void {
    const at = performance.now()
    const sent = this.messages.get(id)
    if (!sent) return void this.#early.set(id, at)
    if (sent.arrivals++ === 0) sent.firstAt = at
    else this.again.push({ id, at })
  }

  /** Publishes one message; resolves when the node has answered. */
  #publish(node: SceneNode): Promise<void> {
    const id = `m${++this.#made}`
    const headers = { authorization: `Bearer ${this.#scene.balanced.credentials.queueToken}` }
    const options = { method: 'POST', headers, agent: this.#agent, timeout: 30_000 }
    const begunAt = performance.now()
    return new Promise((resolve) => {
      const fail = (): void => {
        this.failed++
        resolve()
      }
      const call = request(`${node.homeport.queueUrl}/v2/publish/${this.#url}/${id}`, options, (answer) => {
        answer.resume()
        if (answer.statusCode !== 201 && answer.statusCode !== 200) return fail()
        this.#accepted(id, begunAt)
        resolve()
      })
      call.on('timeout', () => call.destroy())
      call.on('error', fail)
      call.end()
    })
  }

  #accepted(id: string, begunAt: number): void {
    const acceptedAt = performance.now()
    const at = this.#early.get(id)
    const arrival = at === undefined ? { arrivals: 0, firstAt: 0 } : { arrivals: 1, firstAt: at }
    this.messages.set(id, { acceptedAt, publishMs: acceptedAt - begunAt, ...arrival })
    this.#early.delete(id)
  }

  #next(): SceneNode | undefined {
    const ready = this.#scene.nodes.filter(({ isReady }) => isReady)
    return ready[this.#made % ready.length]
  }

  /** From now on publishes at this rate, messages a second. */
  publishAt(rate: number): void {
    this.#isOver = false
    this.#publishing = this.#publishForever((rate * TICK_MS) / 1_000)
  }

  async #publishForever(perTick: number): Promise<void> {
    for (let due = 0, next = performance.now(); !this.#isOver; next += TICK_MS) {
      for (due += perTick; due >= 1; due--) {
        const node = this.#next()
        if (node) void this.#publish(node)
      }
      await pause(Math.max(0, next + TICK_MS - performance.now()))
    }
  }

  /** From now on publishes as fast as a number of callers can. */
  publishBy(callers: number): void {
    this.#isOver = false
    this.#publishing = Promise.all(
      Array.from({ length: callers }, async () => {
        while (!this.#isOver) {
          const node = this.#next()
          if (node) await this.#publish(node)
          else await pause(TICK_MS)
        }
      }),
    )
  }

  /** Stops publishing; resolves when no publish is pending. */
  async pause(): Promise<void> {
    this.#isOver = true
    await this.#publishing
  }

  forget(): void {
    this.messages.clear()
    this.again.length = 0
    this.failed = 0
  }

  async close(): Promise<void> {
    await this.pause()
    await this.senders.stop()
    this.#agent.destroy()
    this.#sink.closeAllConnections()
    await new Promise((resolve) => this.#sink.close(resolve))
  }
}
