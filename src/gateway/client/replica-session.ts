import type { Duplex } from 'node:stream'
import type { ClientMemoryBudget, MemoryConsumer } from '../../base/index.js'
import { findCommand, findSubcommand, type KnownCommand } from '../commands/command-table.js'
import type { ReadsHere } from '../replicas/reads-here.js'
import type { ReplicaLane } from '../replicas/replica-lane.js'
import { type PendingRead, type ReplicaReader, ReplicaReads } from '../replicas/replica-reads.js'
import { type SteeredFlow, type SteeredLane, Steering } from '../replicas/steering.js'
import { limitsAfterLogin } from '../resp/command-limits.js'
import { CommandParser } from '../resp/command-parser.js'
import { encodeError } from '../resp/encode.js'
import { keep, type LentBytes } from '../resp/lent-memory.js'
import { beginsTls } from '../tls/opening.js'
import { type FaultOwner, guarded, listen } from './guarded.js'
import { firstWords, HomeView } from './home-view.js'

/** The collaborators of a session. `fault` closes the connection of the client. */
export interface ReplicaSessionDeps extends FaultOwner {
  readonly databaseId: string
  readonly reads: Pick<ReadsHere, 'lane' | 'mayRead' | 'take' | 'note' | 'countForwarded' | 'sawPrimary'>
  /** Disconnects the client when too much memory is held for all clients of the server. */
  readonly memory: Pick<ClientMemoryBudget, 'grow' | 'remove'>
  /** Monotonic time, milliseconds. */
  readonly nowMs: () => number
}

/** A command goes to the home at least this often, so that the home does not consider the client idle. */
const HOME_CONTACT_EVERY_MS = 10_000
/** Reads that are sent to the replica ahead of their replies. */
const MAX_READS_AHEAD = 256
/** Most bytes that are held for a client that has not logged in. Above that it is disconnected. */
const MAX_HELD_BEFORE_LOGIN = 1024 * 1024

/**
 * The connection of a client to a database whose home is another node and whose replica this node keeps. Commands go to the
 * home, over a connection for this client alone: the home logs the client in, limits it and keeps its state. Only plain
 * reads may go to the replica, as `Steering` decides, and only while `HomeView` knows that a read means the same there.
 *
 * ```
 *   new ──a command──▶ steered: each command goes to the home or to the replica
 *    └──TLS──▶ raw: all bytes go unchanged to the home, which does the handshake
 * ```
 *
 * A client never sees an older state than before: every answer of the home is noted before the client can send another read.
 */
export class ReplicaSession implements SteeredLane, SteeredFlow, ReplicaReader, MemoryConsumer {
  readonly #deps: ReplicaSessionDeps
  readonly #client: Duplex
  readonly #home: Duplex
  readonly #parser = new CommandParser()
  readonly #view = new HomeView()
  readonly #steering: Steering
  #state: 'new' | 'raw' | 'steered' = 'new'
  /** Present while commands go to the replica. */
  #reads: ReplicaReads | undefined
  /** Reads that the replica has not answered, in their order. */
  #pendingReads: { readonly name: string; readonly bytes: number }[] = []
  /** The error after which the session ends: the client gets it after all pending replies. */
  #finalError: Buffer | undefined
  /** What the next command waits for. */
  #waitsFor: 'nothing' | 'replica' | 'quiet' | 'reader' | 'home' = 'nothing'
  #homeContactMs: number
  #inputEnded = false

  constructor(client: Duplex, home: Duplex, deps: ReplicaSessionDeps) {
    this.#deps = deps
    this.#client = client
    this.#home = home
    this.#homeContactMs = deps.nowMs()
    this.#parser.limits = limitsAfterLogin(Number.POSITIVE_INFINITY)
    this.#steering = new Steering(this, this)
    this.#listen()
  }

  get owner(): string {
    return this.#deps.databaseId
  }

  get heldBytes(): number {
    return this.#parser.heldBytes + this.#client.writableLength
  }

  evict(): void {
    this.#client.destroy()
  }

  get replica(): ReplicaLane | undefined {
    const { reads, databaseId } = this.#deps
    const { user, protocol, isLost } = this.#view
    return user === undefined || isLost ? undefined : reads.lane({ databaseId, user, protocol })
  }

  get isShared(): boolean {
    return this.#view.isFree
  }

  get isOnReplica(): boolean {
    return this.#reads !== undefined
  }

  useReplica(): void {
    const { replica } = this
    if (replica) this.#reads = new ReplicaReads(replica, this)
  }

  usePrimary(): void {
    this.#reads = undefined
  }

  get isIdle(): boolean {
    return this.#pendingReads.length === 0 && this.#view.isIdle
  }

  flush(): boolean {
    return true
  }

  quietOrRetry(): boolean {
    if (this.#pendingReads.length === 0) return true
    this.#parser.repeat()
    this.#waitsFor = 'quiet'
    return false
  }

  retryWhen(promise: Promise<void>): void {
    this.#parser.repeat()
    this.#waitsFor = 'replica'
    const proceed = guarded(this.#deps, () => this.#resume('replica'))
    promise.then(proceed, proceed)
  }

  deliverReply(chunk: LentBytes, start: number, end: number, completed: number): void {
    const { reads, databaseId } = this.#deps
    const answered = this.#pendingReads.splice(0, completed)
    const bytesIn = answered.reduce((sum, { bytes }) => sum + bytes, 0)
    const names = answered.map(({ name }) => name)
    reads.note(databaseId, names, bytesIn, end - start)
    this.#client.write(keep(chunk.subarray(start, end)))
    if (this.#pendingReads.length === 0) this.#quiet()
  }

  retryOnPrimary(pending: readonly PendingRead[]): void {
    this.#reads = undefined
    this.#pendingReads = []
    for (const one of pending) {
      if (one.kind === 'note') continue
      this.#view.sent(one.count)
      this.#pass(one.bytes.subarray(one.start, one.end))
    }
    this.#quiet()
  }

  fail(): void {
    // The client has the beginning of a reply whose rest will not arrive.
    this.#client.destroy()
  }

  /** Ends the input: the client sends no more, or the server stops. The client still gets its replies. */
  finish(): void {
    this.#inputEnded = true
    this.#client.resume()
    this.#take()
  }

  #listen(): void {
    const [client, home] = [this.#client, this.#home]
    listen(this.#deps, client, {
      data: (chunk) => this.#onClient(chunk),
      end: () => this.finish(),
      drain: () => {
        home.resume()
        this.#resume('reader')
      },
    })
    listen(this.#deps, home, {
      data: (chunk) => this.#onHome(chunk),
      end: () => client.end(),
      drain: () => this.#resume('home'),
    })
    for (const end of [client, home]) end.on('error', () => undefined)
    home.on('close', () => client.destroy())
    client.on('close', () => {
      this.#deps.memory.remove(this)
      home.destroy()
    })
  }

  #onClient(chunk: Buffer): void {
    if (this.#inputEnded) return
    if (this.#state === 'new') this.#state = beginsTls(chunk[0]) ? 'raw' : 'steered'
    if (this.#state === 'raw') {
      if (this.#home.write(chunk)) return
      this.#waitsFor = 'home'
      this.#client.pause()
      return
    }
    // After bytes that are no command, nothing more can be parsed.
    if (this.#finalError) return
    this.#parser.push(chunk)
    this.#deps.memory.grow(this, chunk.length)
    this.#take()
    if (this.#waitsFor !== 'nothing') this.#client.pause()
    if (this.#view.user === undefined && this.#parser.heldBytes > MAX_HELD_BEFORE_LOGIN) this.#client.destroy()
  }

  /** Passes bytes of the home on. All users of the client have then seen them, which is noted before any other read. */
  #onHome(chunk: Buffer): void {
    const { reads, databaseId } = this.#deps
    if (!this.#client.write(chunk)) this.#home.pause()
    if (this.#state === 'steered') this.#view.received(chunk)
    const { users, hasUnknownUser, protocol } = this.#view
    const by = { kind: 'port', databaseId } as const
    if (this.#state === 'raw' || hasUnknownUser) reads.sawPrimary(by)
    else reads.countForwarded(by)
    for (const user of users) reads.lane({ databaseId, user, protocol })?.sawPrimary()
    if (this.#finalError) this.#end(this.#finalError)
  }

  /** Called when the replica has answered everything. */
  #quiet(): void {
    this.#resume('quiet')
    if (this.#finalError) this.#end(this.#finalError)
    else if (this.#inputEnded) this.#take()
  }

  #resume(from: 'replica' | 'quiet' | 'reader' | 'home'): void {
    if (this.#waitsFor !== from) return
    this.#waitsFor = 'nothing'
    this.#take()
    if (!this.#isWaiting) this.#client.resume()
  }

  get #isWaiting(): boolean {
    return this.#waitsFor !== 'nothing'
  }

  #take(): void {
    this.#home.cork()
    while (!this.#isWaiting && this.#takeOne()) this.#slowDown()
    // While a command waits for the replica, the session does not read from the client.
    this.#steering.arriving()
    this.#parser.release()
    this.#home.uncork()
    if (this.#inputEnded && !this.#isWaiting && this.#pendingReads.length === 0) this.#home.end()
  }

  #slowDown(): void {
    if (this.#isWaiting) return
    if (this.#pendingReads.length >= MAX_READS_AHEAD) this.#waitsFor = 'quiet'
    else if (this.#client.writableNeedDrain) this.#waitsFor = 'reader'
    else if (this.#home.writableNeedDrain) this.#waitsFor = 'home'
  }

  /** @returns whether there may be another command. */
  #takeOne(): boolean {
    switch (this.#parser.next()) {
      case 'frame':
        this.#onFrame()
        return true
      case 'large':
        if (!this.#steering.passes(undefined)) return false
        this.#pass(this.#frame)
        this.#parser.stream()
        return true
      case 'part':
        this.#pass(this.#frame)
        return true
      case 'last':
        this.#view.sent(1)
        this.#pass(this.#frame)
        return true
      case 'empty':
        return true
      case 'broken':
        this.#end(encodeError(`ERR ${this.#parser.problem}`))
        return false
      case 'oversize':
      case 'more':
        return false
    }
  }

  get #frame(): Buffer {
    const { frameBuffer, frameStart, frameEnd } = this.#parser
    return frameBuffer.subarray(frameStart, frameEnd)
  }

  #onFrame(): void {
    const command = this.#command()
    const { reads, databaseId } = this.#deps
    const mayRead = !this.#isHomeDue && reads.mayRead(databaseId)
    if (!this.#steering.passes(mayRead ? command : undefined)) return
    if (this.#reads && command && reads.take(databaseId, 1, 'node')) this.#read(this.#reads, command)
    // The home allows no more reads for now.
    else if (this.#steering.passes(undefined)) {
      this.#view.sentCommand(command, this.#parser)
      this.#pass(this.#frame)
    }
  }

  #read(reads: ReplicaReads, { name }: KnownCommand): void {
    const { frameBuffer, frameStart, frameEnd } = this.#parser
    this.#pendingReads.push({ name, bytes: frameEnd - frameStart })
    reads.send(keep(frameBuffer), frameStart, frameEnd, 1)
  }

  #pass(bytes: Buffer): void {
    this.#homeContactMs = this.#deps.nowMs()
    this.#home.write(bytes)
  }

  get #isHomeDue(): boolean {
    return this.#deps.nowMs() - this.#homeContactMs > HOME_CONTACT_EVERY_MS
  }

  #command(): KnownCommand | undefined {
    const { frameBuffer, nameStart, nameEnd } = this.#parser
    const command = findCommand(frameBuffer, nameStart, nameEnd)
    if (!command?.allowed || command.state !== 'container') return command
    return findSubcommand(command.name, firstWords(this.#parser)[1] ?? '')
  }

  /** Ends the session with an error, which the client gets after all pending replies. */
  #end(finalError: Buffer): void {
    this.#finalError = finalError
    if (!this.#view.isLost && !this.isIdle) return
    this.#client.end(finalError)
    this.#home.end()
  }
}
