import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { HomeportError } from '../../contract/errors/errors.js'
import { failedWith, misused } from '../errors.js'
import type { Requests } from './requests.js'

/** Steps of a run of the workload `steps`. */
const STEPS = 5

const MAX_BODY_BYTES = 1_000_000

/**
 * The program that the server delivers to during a bench. It receives messages, and it is a workflow of five steps
 * that speaks the step protocol itself (reference workflow 2), because an SDK would cost more than the server.
 */
export class Receiver {
  readonly #server: Server
  readonly #requests: Requests
  /** Callers that wait for the delivery of a message, or the end of a run, by id. */
  readonly #waiting = new Map<string, Waiting>()
  #origin = ''

  private constructor(requests: Requests) {
    this.#requests = requests
    this.#server = createServer((incoming, outgoing) => void this.#answer(incoming, outgoing))
  }

  /**
   * Starts to listen on a free port.
   * @param host the address to listen on, at which the server reaches this program.
   * @param requests to the queue of the server, for the steps of runs.
   */
  static async start(host: string, requests: Requests): Promise<Receiver> {
    const receiver = new Receiver(requests)
    await new Promise<void>((resolve, reject) => {
      receiver.#server.once('error', (cause) => reject(cannotListen(host, cause)))
      receiver.#server.listen(0, host, resolve)
    })
    const { port } = receiver.#server.address() as AddressInfo
    receiver.#origin = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
    return receiver
  }

  /** The URL of messages. */
  get hook(): string {
    return `${this.#origin}/hook`
  }

  /** The URL of the workflow. */
  get workflow(): string {
    return `${this.#origin}/workflow`
  }

  /** Resolves when the message with this id in its body is delivered, or the run with this id has returned. */
  arrival(id: string): Promise<void> {
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
  }

  /** Rejects all callers that still wait. */
  reject(reason: unknown): void {
    for (const { reject } of this.#waiting.values()) reject(reason)
    this.#waiting.clear()
  }

  /** Stops listening. */
  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Answers one delivery. Never rejects. */
  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    try {
      const body = await bodyOf(incoming)
      if (incoming.url === '/workflow') await this.#step(String(incoming.headers['upstash-workflow-runid']), body)
      else this.#arrived(body)
      outgoing.writeHead(200, { 'content-length': 2, 'upstash-workflow-sdk-version': '1' }).end('{}')
    } catch (error) {
      // A failed request of the load ends the bench: otherwise callers would wait forever for a delivery.
      this.reject(error)
      outgoing.writeHead(500).end()
    }
  }

  /** Handles a delivery as an SDK does: sends the result of the next step, or returns. */
  async #step(runId: string, body: string): Promise<void> {
    const elements: unknown = JSON.parse(body)
    // Ignores runs of an earlier bench or of another program.
    if (!Array.isArray(elements) || !this.#waiting.has(runId)) return
    const stepId = elements.length
    if (stepId > STEPS) {
      const path = `/v2/workflows/runs/${runId}?cancel=false`
      await this.#requests.send({ method: 'DELETE', path, body: '"done"' })
      return this.#arrived(runId)
    }
    const step = { stepId, stepName: `step ${stepId}`, stepType: 'Run', out: '"result"', concurrent: 1 }
    await this.#requests.send(workflowItem(this.workflow, runId, JSON.stringify(step), 'step'))
  }

  #arrived(id: string): void {
    this.#waiting.get(id)?.resolve()
    this.#waiting.delete(id)
  }
}

interface Waiting {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** The request that begins a run, or adds a step to it (reference workflow 2). */
export function workflowItem(destination: string, runId: string, body: string, what: 'begin' | 'step') {
  const headers = {
    'content-type': 'application/json',
    'upstash-method': 'POST',
    'upstash-workflow-init': String(what === 'begin'),
    'upstash-workflow-runid': runId,
    'upstash-workflow-url': destination,
    'upstash-workflow-sdk-version': '1',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'upstash-feature-set': 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig',
  }
  return { method: 'POST', path: '/v2/batch', body: JSON.stringify([{ destination, headers, body }]) } as const
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  let text = ''
  incoming.setEncoding('utf8')
  for await (const chunk of incoming) {
    text += chunk
    if (text.length > MAX_BODY_BYTES) throw failedWith('A delivery is too large.')
  }
  return text
}

function cannotListen(host: string, cause: unknown): HomeportError {
  const problem = `This program cannot listen on ${host}. Choose an address of this machine with --receiver.`
  return misused(problem, { cause })
}
