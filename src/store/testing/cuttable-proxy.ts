import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { CommitReplies } from './commit-replies.js'

/** A TCP proxy that can be cut like a cable. */
export interface CuttableProxy {
  readonly port: number
  /** Breaks all connections; new ones break at once. */
  cut(): void
  /** Accepts new connections again. */
  mend(): void
  /** Cuts when a client sends these bytes: the server still receives them, but its reply is lost. */
  cutAfter(bytes: string): void
  /**
   * Calls `isLost` before the reply to each commit that changed rows, until another function is set. When it returns true,
   * the proxy drops the reply and breaks the connection: the server has committed, and its client cannot know.
   */
  loseCommits(isLost: () => boolean): void
  /** Loses the reply to the next commit that changes rows. Resolves when that has happened. */
  loseNextCommit(): Promise<void>
  /**
   * A black hole: connections stay open, but bytes and the closing of a side do not arrive before `mend`, as when a network
   * loses packets and TCP repeats them.
   * @param what both directions, or only the answers of the server.
   * @param isOf selects connections by the client's socket. Default: all.
   */
  swallow(what: 'everything' | 'answers', isOf?: (client: Socket) => boolean): void
  /** A black hole for the connections that are open now, until they are closed. New ones are not affected. */
  abandon(): void
  /** New connections lead to this port of 127.0.0.1. */
  leadTo(targetPort: number): void
  /** Closes the server's end of the open connections, or of the first ones. Their clients do not notice. */
  halfOpen(count?: number): void
  close(): Promise<void>
}

/** One direction of a connection: runs its events in order, and delays them while it is in a black hole. */
class Direction {
  readonly #isSwallowed: () => boolean
  #late: (() => void)[] = []
  #isAbandoned = false

  constructor(isSwallowed: () => boolean) {
    this.#isSwallowed = isSwallowed
  }

  do(event: () => void): void {
    if (this.#isAbandoned) return
    if (this.#late.length > 0 || this.#isSwallowed()) this.#late.push(event)
    else event()
  }

  abandon(): void {
    this.#isAbandoned = true
    this.#late = []
  }

  resume(): void {
    const late = this.#late
    this.#late = []
    for (const event of late) event()
  }
}

/** What a proxy does with its connections. */
interface State {
  targetPort: number
  swallowed: 'nothing' | 'everything' | 'answers'
  isSwallowed: (client: Socket) => boolean
  readonly directions: Set<Direction>
  readonly clients: Set<Socket>
  readonly targets: Set<Socket>
  isCut: boolean
  trigger: string | undefined
  isLost: () => boolean
}

const keepAll = (): boolean => false
const every = (): boolean => true

function cut(state: State): void {
  state.isCut = true
  for (const client of state.clients) client.destroy()
}

/** Forwards a connection, as long as nothing breaks it. */
function forward(client: Socket, state: State): void {
  if (state.isCut) return void client.destroy()
  const requests = new Direction(() => state.swallowed === 'everything' && state.isSwallowed(client))
  const answers = new Direction(() => state.swallowed !== 'nothing' && state.isSwallowed(client))
  for (const direction of [requests, answers]) state.directions.add(direction)
  const target = connect(state.targetPort, '127.0.0.1')
  for (const [socket, all] of [[client, state.clients] as const, [target, state.targets] as const]) {
    all.add(socket)
    // The proxy should not add latency to answers.
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
  }
  forwardAnswers(target, client, answers, state)
  client.on('data', (chunk: Buffer) => requests.do(() => request(chunk, target, state)))
  client.on('close', () => {
    state.clients.delete(client)
    requests.do(() => {
      target.end()
      for (const direction of [requests, answers]) state.directions.delete(direction)
    })
  })
}

function request(chunk: Buffer, target: Socket, state: State): void {
  const isTrigger = state.trigger !== undefined && chunk.includes(state.trigger)
  if (isTrigger) target.end(chunk, () => cut(state))
  else target.write(chunk)
}

function forwardAnswers(target: Socket, client: Socket, answers: Direction, state: State): void {
  const replies = new CommitReplies()
  const answer = (chunk: Buffer): void => {
    if (replies.completedBy(chunk) && state.isLost()) client.destroy()
    else if (!client.write(chunk)) target.pause()
  }
  target.on('data', (chunk: Buffer) => answers.do(() => answer(chunk)))
  client.on('drain', () => target.resume())
  target.on('end', () => answers.do(() => client.end()))
  // A server that closes before it has read everything resets the connection; a pipe would not forward that.
  target.on('close', (isReset) => {
    state.targets.delete(target)
    if (isReset) answers.do(() => client.resetAndDestroy())
  })
}

function mend(state: State): void {
  Object.assign(state, { isCut: false, trigger: undefined, swallowed: 'nothing' })
  for (const direction of state.directions) direction.resume()
}

/** Listens on a free port of 127.0.0.1 and forwards everything to `targetPort`. */
export async function cuttableProxy(targetPort: number): Promise<CuttableProxy> {
  const sets = { clients: new Set<Socket>(), targets: new Set<Socket>(), directions: new Set<Direction>() }
  const whole = { isCut: false, trigger: undefined, isLost: keepAll }
  const state: State = { ...sets, targetPort, swallowed: 'nothing', isSwallowed: every, ...whole }
  const server: Server = createServer((client) => forward(client, state))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => cut(state),
    mend: () => mend(state),
    swallow: (what, isOf = every) => Object.assign(state, { swallowed: what, isSwallowed: isOf }),
    abandon: () => {
      for (const direction of state.directions) direction.abandon()
    },
    leadTo: (port) => Object.assign(state, { targetPort: port }),
    cutAfter: (trigger) => Object.assign(state, { trigger }),
    loseCommits: (isLost) => Object.assign(state, { isLost }),
    loseNextCommit: () =>
      new Promise((resolve) => {
        state.isLost = () => {
          state.isLost = keepAll
          resolve()
          return true
        }
      }),
    halfOpen: (count = state.targets.size) => {
      for (const target of [...state.targets].slice(0, count)) target.destroy()
    },
    close: () => {
      mend(state)
      cut(state)
      for (const target of state.targets) target.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
