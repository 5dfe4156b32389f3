import { pause, systemClock } from '../../src/base/index.js'
import { type CuttableProxy, cuttableProxy } from '../../src/store/testing/cuttable-proxy.js'
import { type PostgresServer, startPostgresServer } from '../../src/store/testing/postgres-server.js'
import { freePort, newPlace, type Place, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { type Balancer, startBalancer } from './balancer.js'

/** What can happen to a node, or to what it is connected to. */
export const NODE_FAULTS = [
  'kill',
  'pause',
  'cut from PostgreSQL',
  'cut from the others',
  'lost commits',
  'restart of PostgreSQL',
  'drain',
] as const

/** A fault. */
export type NodeFault = (typeof NODE_FAULTS)[number]

/** Lengths of a pause and of a cut: shorter than a node may be silent, longer, and much longer. */
const LENGTHS_MS = [2_000, 6_000, 20_000]
const MOST_LOST = 12
const READY_EVERY_MS = 100
const READY_WITHIN_MS = 1_000

/** A node and the cables that lead to it. */
export interface SceneNode {
  readonly name: string
  readonly place: Place
  readonly peerPort: number
  readonly toPostgres: CuttableProxy
  /** Through which the others reach its peer link. */
  readonly fromPeers: CuttableProxy
  homeport: RunningHomeport
  isReady: boolean
}

/** What a scene starts with. */
export interface NodeSceneOptions {
  readonly random: () => number
  readonly nodes: number
  /** Called when a fault begins and each second while it lasts: requests before and after may be sent twice. */
  readonly onDisturbance: () => void
  /** More flags for each node. */
  readonly args?: readonly string[]
}

/** Several nodes on one PostgreSQL behind one balancer. */
export class NodeScene {
  readonly #options: NodeSceneOptions
  readonly #server: PostgresServer
  readonly nodes: SceneNode[] = []
  #balancer: Balancer | undefined
  #isStopped = false
  #looking: Promise<void> = Promise.resolve()
  lostCommits = 0

  private constructor(server: PostgresServer, options: NodeSceneOptions) {
    this.#server = server
    this.#options = options
  }

  /** Starts the nodes one after the other: the first makes the account. */
  static async start(options: NodeSceneOptions): Promise<NodeScene> {
    const scene = new NodeScene(await startPostgresServer('crash'), options)
    for (let index = 0; index < options.nodes; index++) await scene.#add(String.fromCharCode(97 + index))
    scene.#balancer = await startBalancer(() => scene.nodes.filter((each) => each.isReady).map(urlOf))
    scene.#looking = scene.#lookForever()
    await waitFor(() => scene.nodes.every(({ isReady }) => isReady), { what: 'every node to be ready' })
    return scene
  }

  async #add(name: string): Promise<SceneNode> {
    const [place, peerPort, toPostgres] = await Promise.all([newPlace(), freePort(), cuttableProxy(this.#server.port)])
    const cables = { toPostgres, fromPeers: await cuttableProxy(peerPort) }
    const homeport = await this.#start({ name, place, peerPort, ...cables })
    const node = { name, place, peerPort, ...cables, homeport, isReady: true }
    this.nodes.push(node)
    return node
  }

  #start(node: Omit<SceneNode, 'homeport' | 'isReady'>): Promise<RunningHomeport> {
    const { username, password } = new URL(this.#server.url)
    const store = `postgres://${username}:${password}@127.0.0.1:${node.toPostgres.port}/postgres`
    const cluster = ['--node', node.name, '--advertise', `127.0.0.1:${node.fromPeers.port}`]
    const first = this.nodes[0]
    return startHomeport({
      ...node.place,
      mayHaveStrays: true,
      args: ['--store', store, ...cluster, '--peer-port', String(node.peerPort), ...(this.#options.args ?? [])],
      ...(first && first.name !== node.name && { credentials: first.homeport.credentials }),
    })
  }

  /** Starts an ended node again. */
  restart(node: SceneNode): Promise<RunningHomeport> {
    return this.#start(node)
  }

  /** Past the proxies. */
  get storeUrl(): string {
    return `${this.#server.url}/postgres`
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

  /** As a balancer looks at them. Ends with the scene. */
  async #lookForever(): Promise<void> {
    while (!this.#isStopped) {
      await Promise.all(this.nodes.map((node) => this.#look(node)))
      await pause(systemClock, READY_EVERY_MS)
    }
  }

  async #look(node: SceneNode): Promise<void> {
    const signal = AbortSignal.timeout(READY_WITHIN_MS)
    node.isReady = await fetch(`${node.homeport.queueUrl}/readyz`, { signal }).then(
      (response) => response.ok,
      () => false,
    )
  }

  /** Lets a fault happen; resolves when it is over and every node is ready again. */
  async suffer(fault: NodeFault, during: () => Promise<void>): Promise<void> {
    const node = this.nodes[Math.floor(this.#options.random() * this.nodes.length)]
    if (!node) return
    this.#options.onDisturbance()
    const disturbing = this.#disturbWhile()
    try {
      await this.#happen(fault, node, during)
      await during()
      // A node that was declared dead has ended; what supervises it starts it again.
      if (!isRunning(node.homeport.pid)) node.homeport = await this.#start(node)
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

  async #happen(fault: NodeFault, node: SceneNode, during: () => Promise<void>): Promise<void> {
    switch (fault) {
      case 'kill':
        await node.homeport.kill('SIGKILL')
        await during()
        node.homeport = await this.#start(node)
        return
      case 'drain':
        await node.homeport.kill('SIGTERM')
        await during()
        node.homeport = await this.#start(node)
        return
      case 'pause':
        process.kill(node.homeport.pid, 'SIGSTOP')
        await this.#while()
        process.kill(node.homeport.pid, 'SIGCONT')
        return
      case 'cut from PostgreSQL':
        return this.#cut(node.toPostgres)
      case 'cut from the others':
        return this.#cut(node.fromPeers)
      case 'lost commits':
        return this.#loseCommits(node, during)
      case 'restart of PostgreSQL':
        return this.#server.restartImmediately()
    }
  }

  async #cut(proxy: CuttableProxy): Promise<void> {
    proxy.cut()
    await this.#while()
    proxy.mend()
  }

  async #loseCommits(node: SceneNode, during: () => Promise<void>): Promise<void> {
    const most = 1 + Math.floor(this.#options.random() * MOST_LOST)
    let lost = 0
    node.toPostgres.loseCommits(() => {
      if (lost >= most || this.#options.random() < 0.8) return false
      lost++
      this.lostCommits++
      return true
    })
    await waitFor(() => lost > 0, { what: 'the first lost commit' })
    await during()
    node.toPostgres.loseCommits(() => false)
  }

  /** A fault lasts for a time; nothing else could end it. */
  #while(): Promise<void> {
    return pause(systemClock, LENGTHS_MS[Math.floor(this.#options.random() * LENGTHS_MS.length)] ?? 0)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#looking
    await this.#balancer?.close()
    for (const { homeport } of this.nodes) await homeport.kill('SIGTERM')
    for (const { toPostgres, fromPeers } of this.nodes) await Promise.all([toPostgres.close(), fromPeers.close()])
    await this.#server.stop()
  }
}

function isRunning(pid: number): boolean {
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
