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
   * Asked before the reply to each commit that changed rows, until another function is set. When it answers true, the
   * reply is lost and its connection broken: the server has committed, and its client cannot know.
   */
  loseCommits(isLost: () => boolean): void
  /** Loses the reply to the next commit that changes rows. Resolves when that has happened. */
  loseNextCommit(): Promise<void>
  /** Closes the server's end of the open connections, or of the first ones. Their clients do not notice. */
  halfOpen(count?: number): void
  close(): Promise<void>
}

/** What a proxy does with its connections. */
interface State {
  readonly clients: Set<Socket>
  readonly targets: Set<Socket>
  isCut: boolean
  trigger: string | undefined
  isLost: () => boolean
}

const keepAll = (): boolean => false

function cut(state: State): void {
  state.isCut = true
  for (const client of state.clients) client.destroy()
}

/** Forwards a connection, as long as nothing breaks it. */
function forward(client: Socket, targetPort: number, state: State): void {
  if (state.isCut) return void client.destroy()
  state.clients.add(client)
  const target = connect(targetPort, '127.0.0.1')
  state.targets.add(target)
  const replies = new CommitReplies()
  target.on('data', (chunk: Buffer) => {
    if (replies.completedBy(chunk) && state.isLost()) client.destroy()
    else if (!client.write(chunk)) target.pause()
  })
  client.on('drain', () => target.resume())
  target.on('end', () => client.end())
  // A server that closes before it has read everything resets the connection; a pipe would not forward that.
  target.on('close', (isReset) => {
    state.targets.delete(target)
    if (isReset) client.resetAndDestroy()
  })
  client.on('data', (chunk: Buffer) => {
    const isTrigger = state.trigger !== undefined && chunk.includes(state.trigger)
    if (isTrigger) target.end(chunk, () => cut(state))
    else target.write(chunk)
  })
  client.on('close', () => {
    state.clients.delete(client)
    target.end()
  })
  for (const socket of [client, target]) socket.on('error', () => undefined)
}

/** Listens on a free port of 127.0.0.1 and forwards everything to `targetPort`. */
export async function cuttableProxy(targetPort: number): Promise<CuttableProxy> {
  const state: State = { clients: new Set(), targets: new Set(), isCut: false, trigger: undefined, isLost: keepAll }
  const server: Server = createServer((client) => forward(client, targetPort, state))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => cut(state),
    mend: () => Object.assign(state, { isCut: false, trigger: undefined }),
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
      cut(state)
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
