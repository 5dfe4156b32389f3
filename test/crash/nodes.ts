import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pause, systemClock } from '../../src/base/index.js'
import { type CuttableProxy, cuttableProxy } from '../../src/store/testing/cuttable-proxy.js'
import { type PostgresServer, startPostgresServer } from '../../src/store/testing/postgres-server.js'
import {
  freePort,
  newPlace,
  type Place,
  type RunningHomeport,
  startHomeport,
  tempDir,
  waitFor,
} from '../support/index.js'
import { type Balancer, startBalancer } from './balancer.js'
import { connectToPostgres } from './queue-ledger-store.js'

const READY_EVERY_MS = 100
const READY_WITHIN_MS = 1_000
const MAX_SILENCES = 3
const FIRST_NAME = 'a'.charCodeAt(0)
const CLOCK_SHIFT = new URL('clock-shift.mjs', import.meta.url).href

/** A node and the cables that lead to it. */
export interface SceneNode {
  readonly name: string
  readonly place: Place
  readonly peerPort: number
  readonly toPostgres: CuttableProxy
  /** The other nodes reach its peer link through this proxy. */
  readonly fromPeers: CuttableProxy
  /** Holds by how many milliseconds its wall clock is wrong. */
  readonly clockFile: string
  homeport: RunningHomeport
  isReady: boolean
  /** How many looks of the balancer in a row it has not answered. */
  silences: number
}

/** What a scene starts with. */
export interface NodeSceneOptions {
  readonly random: () => number
  readonly nodes: number
  /** Called when a fault begins and each second while it lasts: requests before and after may be sent twice. */
  readonly onDisturbance: () => void
  /** How often the balancer looks at each node. Default: 100. */
  readonly readyEveryMs?: number
  /** More flags for each node. */
  readonly args?: readonly string[]
  /** The regions that the nodes serve, in their order. Default: none has one. */
  readonly regions?: readonly string[]
  /** The file that each node runs. Default: the built command. */
  readonly program?: string
}

/** Several nodes on one PostgreSQL behind one balancer. */
export class NodeScene {
  readonly #options: NodeSceneOptions
  /** The primary; a failover changes it. */
  server: PostgresServer
  readonly nodes: SceneNode[] = []
  #balancer: Balancer | undefined
  #isStopped = false
  #looking: Promise<void> = Promise.resolve()
  lostCommits = 0
  #program: string | undefined

  private constructor(server: PostgresServer, options: NodeSceneOptions) {
    this.server = server
    this.#options = options
    this.#program = options.program
  }

  /** Starts the first node, which makes the account, and then the others. */
  static async start(options: NodeSceneOptions): Promise<NodeScene> {
    const scene = new NodeScene(await startPostgresServer('crash'), options)
    await scene.add()
    const others = Array.from({ length: options.nodes - 1 }, (_, index) => scene.#startNew(index + 1))
    scene.nodes.push(...(await Promise.all(others)))
    scene.#balancer = await startBalancer(() => scene.nodes.filter((each) => each.isReady).map(urlOf))
    scene.#looking = scene.#lookForever()
    await waitFor(() => scene.nodes.every(({ isReady }) => isReady), { what: 'every node to be ready' })
    return scene
  }

  /** Starts one more node. */
  async add(): Promise<SceneNode> {
    const node = await this.#startNew(this.nodes.length)
    this.nodes.push(node)
    return node
  }

  async #startNew(index: number): Promise<SceneNode> {
    const name = String.fromCharCode(FIRST_NAME + index)
    const [place, peerPort, toPostgres] = await Promise.all([newPlace(), freePort(), cuttableProxy(this.server.port)])
    const clockFile = join(tempDir(), 'clock-shift')
    writeFileSync(clockFile, '0')
    const cables = { toPostgres, fromPeers: await cuttableProxy(peerPort) }
    const homeport = await this.#start({ name, place, peerPort, clockFile, ...cables })
    return { name, place, peerPort, clockFile, ...cables, homeport, isReady: true, silences: 0 }
  }

  #start(node: Omit<SceneNode, 'homeport' | 'isReady' | 'silences'>): Promise<RunningHomeport> {
    const { username, password } = new URL(this.server.url)
    const store = `postgres://${username}:${password}@127.0.0.1:${node.toPostgres.port}/postgres`
    const cluster = ['--node', node.name, '--advertise', `127.0.0.1:${node.fromPeers.port}`]
    const first = this.nodes[0]
    return startHomeport({
      ...node.place,
      mayHaveStrays: true,
      env: { NODE_OPTIONS: `--import=${CLOCK_SHIFT}`, HOMEPORT_TEST_CLOCK_SHIFT: node.clockFile },
      args: ['--store', store, ...cluster, '--peer-port', String(node.peerPort), ...this.#flagsOf(node.name)],
      ...(this.#program !== undefined && { program: this.#program }),
      ...(first && first.name !== node.name && { credentials: first.homeport.credentials }),
    })
  }

  #flagsOf(name: string): readonly string[] {
    const { args = [], regions = [] } = this.#options
    const region = regions[name.charCodeAt(0) - FIRST_NAME]
    return region === undefined ? args : [...args, '--region', region]
  }

  /** Nodes that start from now on run this file. */
  useProgram(program: string | undefined): void {
    this.#program = program
  }

  /** The running processes, by the names of their nodes. */
  get pids(): ReadonlyMap<string, number> {
    return new Map(this.nodes.flatMap(({ name, homeport: { pid } }) => (isRunning(pid) ? [[name, pid] as const] : [])))
  }

  /** Starts an ended node again. */
  restart(node: SceneNode): Promise<RunningHomeport> {
    return this.#start(node)
  }

  /** URL of the store, without the proxies. */
  get storeUrl(): string {
    return `${this.server.url}/postgres`
  }

  /** Stops a node as an operator does, and starts it again. @param between runs while it is stopped. */
  async replace(node: SceneNode, between: () => Promise<void>): Promise<void> {
    this.#options.onDisturbance()
    await node.homeport.kill('SIGTERM')
    await between()
    node.homeport = await this.#start(node)
    await waitFor(() => node.isReady, { what: `${node.name} to be ready`, deadlineMs: 60_000 })
    this.#options.onDisturbance()
  }

  /** How many lives of nodes were declared dead so far. */
  async deadNodes(): Promise<number> {
    const client = await connectToPostgres(this.storeUrl)
    try {
      return (await client.query("SELECT count(*)::int AS dead FROM nodes WHERE state = 'dead'")).rows[0]?.dead
    } finally {
      await client.end()
    }
  }

  /** A server whose requests go to the ready nodes in turn. */
  get balanced(): RunningHomeport {
    const [first] = this.nodes
    if (!first || !this.#balancer) throw new Error('the scene is not started')
    const { url } = this.#balancer
    const { queueToken } = first.homeport.credentials
    return {
      ...first.homeport,
      queueUrl: url,
      queue: async (method, path, body, headers = {}) => {
        const init = { method, ...(body !== undefined && { body: JSON.stringify(body) }) }
        const json = { 'content-type': 'application/json' }
        const all = { ...(body !== undefined && json), authorization: `Bearer ${queueToken}`, ...headers }
        const response = await fetch(url + path, { ...init, headers: all })
        const text = await response.text()
        return { status: response.status, headers: response.headers, body: parsed(text) }
      },
    }
  }

  /** Checks whether the nodes are ready, as a balancer does, until the scene ends. */
  async #lookForever(): Promise<void> {
    while (!this.#isStopped) {
      await Promise.all(this.nodes.map((node) => this.#look(node)))
      await pause(systemClock, this.#options.readyEveryMs ?? READY_EVERY_MS)
    }
  }

  /** A node that does not answer in time may be busy, so it has three chances. A node that answers "not ready" has none. */
  async #look(node: SceneNode): Promise<void> {
    const signal = AbortSignal.timeout(READY_WITHIN_MS)
    const answer = await fetch(`${node.homeport.queueUrl}/readyz`, { signal }).then(
      (response) => (response.ok ? 'yes' : 'no'),
      () => (signal.aborted ? 'nothing' : 'no'),
    )
    node.silences = answer === 'nothing' ? node.silences + 1 : 0
    node.isReady = answer === 'yes' || (answer === 'nothing' && node.isReady && node.silences < MAX_SILENCES)
  }

  /**
   * Causes a fault at one of the nodes; resolves when it is over and every node is ready again.
   * @param happen makes the fault. @param during resolves when every client has had another success.
   */
  async suffer(fault: string, happen: (node: SceneNode) => Promise<void>, during: () => Promise<void>): Promise<void> {
    const node = this.nodes[Math.floor(this.#options.random() * this.nodes.length)]
    if (!node) return
    this.#options.onDisturbance()
    const disturbing = this.#disturbWhile()
    try {
      await happen(node)
      await during()
      // A node that was declared dead has ended; what supervises it starts it again.
      for (const each of this.nodes) if (!isRunning(each.homeport.pid)) each.homeport = await this.#start(each)
      await waitFor(() => this.nodes.every(({ isReady }) => isReady), {
        what: `every node to be ready after ${fault} of ${node.name}`,
        deadlineMs: 60_000,
      })
    } finally {
      disturbing()
    }
    this.#options.onDisturbance()
  }

  #disturbWhile(): () => void {
    const timer = setInterval(this.#options.onDisturbance, 500)
    return () => clearInterval(timer)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#looking
    await this.#balancer?.close()
    await Promise.all(this.nodes.map(({ homeport }) => homeport.kill('SIGTERM')))
    for (const { toPostgres, fromPeers } of this.nodes) await Promise.all([toPostgres.close(), fromPeers.close()])
    await this.server.stop()
  }
}

/** Whether there is a process with this id. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const urlOf = ({ homeport }: SceneNode): string => homeport.queueUrl

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
