import { pause, systemClock } from '../../src/base/index.js'
import type { Answer, RunningHomeport } from '../support/index.js'
import { basicOf, call } from '../support/index.js'
import type { NodeScene, SceneNode } from './nodes.js'
import type { Repeat } from './queue-ledger-load.js'

/** A revocation may take 7 s when a node has just died. */
const ANSWER_WITHIN_MS = 15_000
/** The most pending uses at a node that does not answer. Their answers arrive when it runs again. */
const MAX_OPEN = 20
const BREATH_MS = 20

/** How often secrets are used. */
export interface Uses {
  /** Time between two uses of a secret at a node, before it is revoked. */
  readonly everyMs: number
  /** Uses at each node after the answer to the revocation. */
  readonly afterwards: number
}

/** For campaigns. */
export const EAGER: Uses = { everyMs: 0, afterwards: 20 }

/** For the one fault of `npm test`. */
export const PATIENT: Uses = { everyMs: 200, afterwards: 5 }

let made = 0

/** An API key or a token of the queue, and how a node is asked with it. */
interface Secret {
  readonly what: 'API key' | 'queue token'
  readonly id: string
  readonly path: string
  use(node: SceneNode): Promise<number>
}

/**
 * A client that creates an API key or a token of the queue, uses it at every node, revokes it at one of them, and goes on
 * using it. No use that begins after the answer to the revocation may be accepted, by any node, whatever happens to it.
 */
export class Revocations {
  readonly #scene: NodeScene
  readonly #random: () => number
  readonly #uses: Uses
  readonly #open = new Map<SceneNode, Set<Promise<void>>>()
  readonly #leftOver: Secret[] = []
  #revoked = 0
  #tries = 0
  #refused = 0
  /** Uses that were accepted after the answer. */
  readonly accepted: string[] = []

  constructor(scene: NodeScene, random: () => number, uses: Uses) {
    this.#scene = scene
    this.#random = random
    this.#uses = uses
  }

  /** Starts the clients; they end with the other callers. */
  async run(repeat: Repeat): Promise<void> {
    const revoke = (what: Secret['what']) => repeat(`revocation of ${what}`, () => this.#once(what))
    await Promise.all([revoke('API key'), revoke('queue token')])
  }

  /** Waits for the answers of nodes that were paused. */
  async settled(): Promise<void> {
    await Promise.all([...this.#open.values()].flatMap((each) => [...each]))
  }

  /** In words, for the report. */
  summary(): string {
    return `${this.#revoked} revoked, then ${this.#tries} tries, ${this.#refused} of them refused with 401, ${this.accepted.length} accepted`
  }

  /** Those whose revocation was not answered count towards the limit of an account. */
  async #tidy(): Promise<void> {
    const { homeport } = this.#any()
    for (const { path, id } of this.#leftOver.splice(0)) await within(homeport, 'DELETE', `${path}/${id}`)
  }

  async #once(what: Secret['what']): Promise<void> {
    await this.#tidy()
    const secret = await this.#create(what)
    let isRevoked = false
    const using = this.#ready().map(async (node) => {
      // A node that works accepts the secret at least once before it is revoked, so that it has it in memory.
      do {
        await secret.use(node).catch(() => pause(systemClock, BREATH_MS))
        if (this.#uses.everyMs > 0) await pause(systemClock, this.#uses.everyMs)
      } while (!isRevoked)
    })
    try {
      const { homeport } = this.#any()
      expectOk(await within(homeport, 'DELETE', `${secret.path}/${secret.id}`), `revocation of ${what}`)
      this.#revoked++
    } catch (error) {
      this.#leftOver.push(secret)
      throw error
    } finally {
      isRevoked = true
    }
    await Promise.all([...this.#scene.nodes.map((node) => this.#tryAfterwards(secret, node)), ...using])
  }

  async #create(what: Secret['what']): Promise<Secret> {
    const { homeport } = this.#any()
    const path = what === 'API key' ? '/v2/apikeys' : '/v2/queue-tokens'
    const { body } = expectOk(await within(homeport, 'POST', path, { name: `r${++made}` }), `creation of ${what}`)
    const fields = body as Record<string, string>
    if (what === 'API key') {
      const login = basicOf(homeport.credentials.email, String(fields.api_key))
      return { what, path, id: String(fields.key_id), use: statusOf('apiUrl', '/v2/apikeys', login) }
    }
    return {
      what,
      path,
      id: String(fields.token_id),
      use: statusOf('queueUrl', '/v2/queues', `Bearer ${fields.token}`),
    }
  }

  async #tryAfterwards(secret: Secret, node: SceneNode): Promise<void> {
    const open = this.#open.get(node) ?? new Set()
    this.#open.set(node, open)
    for (let tried = 0; tried < this.#uses.afterwards && open.size < MAX_OPEN; tried++) {
      const answered = this.#try(secret, node).finally(() => open.delete(answered))
      open.add(answered)
      if (node.isReady) await answered
    }
  }

  async #try(secret: Secret, node: SceneNode): Promise<void> {
    this.#tries++
    const status = await secret.use(node).catch(() => undefined)
    if (status === 401) this.#refused++
    if (status !== undefined && status < 400)
      this.accepted.push(`${node.name} accepted the ${secret.what} ${secret.id} with ${status}`)
  }

  #ready(): SceneNode[] {
    return this.#scene.nodes.filter(({ isReady }) => isReady)
  }

  #any(): SceneNode {
    const ready = this.#ready()
    const node = ready[Math.floor(this.#random() * ready.length)]
    if (!node) throw new Error('no node is ready')
    return node
  }
}

const statusOf =
  (service: 'apiUrl' | 'queueUrl', path: string, authorization: string) =>
  async ({ homeport }: SceneNode): Promise<number> =>
    (await call(homeport[service] + path, { headers: { authorization }, signal: AbortSignal.timeout(60_000) })).status

async function within(homeport: RunningHomeport, method: string, path: string, json?: unknown): Promise<Answer> {
  const { email, apiKey } = homeport.credentials
  const headers = { authorization: basicOf(email, apiKey) }
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
  return await call(homeport.apiUrl + path, { method, headers, signal, ...(json !== undefined && { json }) })
}

function expectOk(answer: Answer, what: string): Answer {
  if (answer.status >= 300) throw new Error(`${what} was answered ${answer.status}`)
  return answer
}
