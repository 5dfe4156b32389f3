import type { Duplex } from 'node:stream'
import type { ClientMemoryBudget, MemoryConsumer } from '../../base/index.js'
import { findCommand, findSubcommand, type KnownCommand } from '../commands/command-table.js'
import type { DataUser } from '../deps.js'
import type { ReadsHere } from '../replicas/reads-here.js'
import type { ReplicaLane } from '../replicas/replica-lane.js'
import { type PendingRead, type ReplicaReader, ReplicaReads } from '../replicas/replica-reads.js'
import { type SteeredFlow, type SteeredLane, Steering } from '../replicas/steering.js'
import { frameArguments } from '../resp/arguments.js'
import { limitsAfterLogin } from '../resp/command-limits.js'
import { CommandParser } from '../resp/command-parser.js'
import { encodeError } from '../resp/encode.js'
import { keep, type LentBytes } from '../resp/lent-memory.js'
import { beginsTls } from '../tls/opening.js'
import { type FaultOwner, guarded, listen } from './guarded.js'
import { HomeReplies, type Special } from './home-replies.js'

/** What a session needs. `fault` closes the connection of the client. */
export interface ReplicaSessionDeps extends FaultOwner {
  readonly databaseId: string
  readonly reads: Pick<ReadsHere, 'lane' | 'mayRead' | 'take' | 'note' | 'passed' | 'sawPrimary'>
  /** Disconnects the client when the clients of the server hold too much. */
  readonly memory: Pick<ClientMemoryBudget, 'grow' | 'remove'>
  /** Monotonic, milliseconds. */
  readonly nowMs: () => number
}

/** The home hears of a client at least this often, so that it does not take it for idle. */
const HOME_HEARS_EVERY_MS = 10_000
/** Reads that are sent to the replica ahead of their replies. */
const MOST_READS_AHEAD = 256
/** A client that has not logged in sends no more than this in one piece, bytes. */
const MOST_HELD_BEFORE_LOGIN = 1024 * 1024
/** Arguments of AUTH, HELLO and CLIENT that matter here. */
const MOST_ARGUMENTS = 8

/**
 * The connection of a client to a database whose home is another node and whose replica this node keeps. Every command goes
 * to the home, over a connection for this client alone: the home logs the client in, limits it and keeps its state. Only a plain read
 * goes to the replica, as `Steering` decides, while the client has no state that changes what a read means.
 *
 * ```
 *   new ──a command──▶ steered ──SUBSCRIBE, MONITOR, CLIENT TRACKING or REPLY, an unexpected reply──▶ passed: all to the home
 *    │                    └─ held from MULTI or WATCH until EXEC, DISCARD, UNWATCH or RESET is answered
 *    └──TLS──▶ raw: all bytes go to the home untouched, which does the handshake
 * ```
 */
export class ReplicaSession implements SteeredFlow, ReplicaReader, MemoryConsumer {
  readonly lane: SteeredLane
  readonly #deps: ReplicaSessionDeps
  readonly #client: Duplex
  readonly #home: Duplex
  readonly #parser = new CommandParser()
  readonly #replies: HomeReplies
  readonly #steering: Steering
  #state: 'new' | 'raw' | 'steered' | 'passed' = 'new'
  #isHeld = false
  #user: DataUser | undefined
  /** Every user that the client may have logged in as. */
  readonly #users = new Set<DataUser>()
  /** Whether it may have logged in as somebody else. */
  #isUnknown = false
  #protocol: 2 | 3 = 2
  /** Present while commands go to the replica. */
  #reads: ReplicaReads | undefined
  /** Reads that the replica has not answered, in their order. */
  #pendingReads: { readonly name: string; readonly bytes: number }[] = []
  /** What the client hears last. */
  #lastWord: Buffer | undefined
  /** What the next command waits for. */
  #waitsFor: 'nothing' | 'replica' | 'quiet' | 'reader' | 'home' = 'nothing'
  #homeHeardMs: number
  #inputEnded = false

  constructor(client: Duplex, home: Duplex, deps: ReplicaSessionDeps) {
    this.#deps = deps
    this.#client = client
    this.#home = home
    this.#homeHeardMs = deps.nowMs()
    this.#parser.limits = limitsAfterLogin(Number.POSITIVE_INFINITY)
    this.lane = this.#laneView()
    this.#replies = new HomeReplies({
      answered: (special, first) => this.#onSpecial(special, first),
      unexpected: () => {
        this.#state = 'passed'
      },
    })
    this.#steering = new Steering(this.lane, this)
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

  get isIdle(): boolean {
    return this.#pendingReads.length === 0 && this.#replies.isEmpty
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
    const goOn = guarded(this.#deps, () => this.#resume('replica'))
    promise.then(goOn, goOn)
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
    for (const one of pending) if (one.kind === 'reads') this.#pass(one.bytes.subarray(one.start, one.end), one.count)
    this.#quiet()
  }

  fail(): void {
    // The client has the beginning of a reply whose rest will not come.
    this.#client.destroy()
  }

  /** The client sends no more, or the server stops. It still gets its replies. */
  finish(): void {
    this.#inputEnded = true
    this.#client.resume()
    this.#take()
  }

  #laneView(): SteeredLane {
    const replica = (): ReplicaLane | undefined => (this.#state === 'steered' ? this.#seenBy() : undefined)
    const [isShared, isOnReplica] = [() => !this.#isHeld, () => this.#reads !== undefined]
    return {
      get replica() {
        return replica()
      },
      get isShared() {
        return isShared()
      },
      get isOnReplica() {
        return isOnReplica()
      },
      useReplica: () => {
        const lane = replica()
        if (lane) this.#reads = new ReplicaReads(lane, this)
      },
      usePrimary: () => {
        this.#reads = undefined
      },
    }
  }

  /** What the user has seen, with the way to the replica; undefined before login and while this node keeps no replica. */
  #seenBy(): ReplicaLane | undefined {
    const { reads, databaseId } = this.#deps
    return this.#user === undefined ? undefined : reads.lane({ databaseId, user: this.#user, protocol: this.#protocol })
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
    // Behind bytes that are no command, nothing is one.
    if (this.#lastWord) return
    this.#parser.push(chunk)
    this.#deps.memory.grow(this, chunk.length)
    this.#take()
    if (this.#waitsFor !== 'nothing') this.#client.pause()
    if (this.#user === undefined && this.#parser.heldBytes > MOST_HELD_BEFORE_LOGIN) this.#client.destroy()
  }

  /** All users of the client have seen what is in these bytes: noted in the same turn, before any other read. */
  #onHome(chunk: Buffer): void {
    const { reads, databaseId } = this.#deps
    if (!this.#client.write(chunk)) this.#home.pause()
    if (this.#state === 'steered') this.#replies.push(chunk)
    const by = { kind: 'port', databaseId } as const
    if (this.#state === 'raw' || this.#isUnknown) reads.sawPrimary(by)
    else reads.passed(by)
    for (const user of this.#users) reads.lane({ databaseId, user, protocol: this.#protocol })?.sawPrimary()
    if (this.#lastWord) this.#end(this.#lastWord)
  }

  /** The replica has answered everything. */
  #quiet(): void {
    this.#resume('quiet')
    if (this.#lastWord) this.#end(this.#lastWord)
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
    // The client is not read while the replica is waited for.
    this.#steering.arriving()
    this.#parser.release()
    this.#home.uncork()
    if (this.#inputEnded && !this.#isWaiting && this.#pendingReads.length === 0) this.#home.end()
  }

  #slowDown(): void {
    if (this.#isWaiting) return
    if (this.#pendingReads.length >= MOST_READS_AHEAD) this.#waitsFor = 'quiet'
    else if (this.#client.writableNeedDrain) this.#waitsFor = 'reader'
    else if (this.#home.writableNeedDrain) this.#waitsFor = 'home'
  }

  /** @returns whether there may be another one. */
  #takeOne(): boolean {
    switch (this.#parser.next()) {
      case 'frame':
        this.#onFrame()
        return true
      case 'large':
        if (!this.#steering.passes(undefined)) return false
        this.#pass(this.#frame, 0)
        this.#parser.stream()
        return true
      case 'part':
        this.#pass(this.#frame, 0)
        return true
      case 'last':
        this.#pass(this.#frame, 1)
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
    // The home allows no more for now.
    else if (this.#steering.passes(undefined)) this.#pass(this.#frame, 1, command && this.#specialOf(command))
  }

  #read(reads: ReplicaReads, { name }: KnownCommand): void {
    const { frameBuffer, frameStart, frameEnd } = this.#parser
    this.#pendingReads.push({ name, bytes: frameEnd - frameStart })
    reads.send(keep(frameBuffer), frameStart, frameEnd, 1)
  }

  #pass(bytes: Buffer, count: number, special?: Special): void {
    this.#homeHeardMs = this.#deps.nowMs()
    if (count > 0 && this.#state === 'steered') this.#replies.expect(count, special)
    this.#home.write(bytes)
  }

  get #isHomeDue(): boolean {
    return this.#deps.nowMs() - this.#homeHeardMs > HOME_HEARS_EVERY_MS
  }

  #command(): KnownCommand | undefined {
    const { frameBuffer, nameStart, nameEnd } = this.#parser
    const command = findCommand(frameBuffer, nameStart, nameEnd)
    if (!command?.allowed || command.state !== 'container') return command
    return findSubcommand(command.name, this.#arguments()[1] ?? '')
  }

  #arguments(): readonly string[] {
    const { frameBuffer, frameStart, argumentCount } = this.#parser
    return frameArguments(frameBuffer, frameStart, Math.min(argumentCount, MOST_ARGUMENTS)).map(String)
  }

  /** What the home's reply to a command decides. Changes the state where the reply does not matter. */
  #specialOf(command: KnownCommand): Special | undefined {
    if (!command.allowed) return undefined
    const { name, state } = command
    if (name === 'RESET') return { kind: 'reset' }
    if (name === 'AUTH' || name === 'HELLO') return this.#loginOf(name)
    if (name === 'EXEC' || name === 'DISCARD' || name === 'UNWATCH') return { kind: 'release' }
    if (state === 'transaction') this.#isHeld = true
    const hasStream = state === 'subscription' || state === 'monitor' || state === 'tracking'
    if (hasStream || name === 'CLIENT|REPLY') this.#state = 'passed'
    return undefined
  }

  #loginOf(name: 'AUTH' | 'HELLO'): Special | undefined {
    // In a transaction it is queued.
    if (this.#isHeld) this.#state = 'passed'
    const words = this.#arguments()
    const [, first, second] = words
    const protocol = name === 'HELLO' ? protocolOf(first) : undefined
    if (name === 'AUTH') return { kind: 'login', user: second === undefined ? 'default' : first, protocol }
    const places = words.flatMap((word, at) => (word.toUpperCase() === 'AUTH' ? [at] : []))
    // Elsewhere it may be a name.
    const known = places[0] === 2 ? words[3] : undefined
    return { kind: 'login', user: places.length === 0 ? this.#user : known, protocol }
  }

  #onSpecial(special: Special, first: string): void {
    const isError = first.startsWith('-')
    switch (special.kind) {
      case 'login':
        if (special.user !== undefined) this.#users.add(special.user)
        else this.#isUnknown ||= !isError
        // After an error the home may have logged the client in or not.
        this.#user = isError ? undefined : special.user
        this.#protocol = special.protocol ?? this.#protocol
        return
      case 'reset':
        this.#user = undefined
        this.#protocol = 2
        this.#isHeld = false
        return
      case 'release':
        if (!first.startsWith('+QUEUED') && (!isError || /^-(?:EXECABORT|ERR (?:EXEC|DISCARD) without)/.test(first)))
          this.#isHeld = false
    }
  }

  /** The client cannot be understood any more: it hears so after all replies. */
  #end(lastWord: Buffer): void {
    this.#lastWord = lastWord
    if (this.#state === 'steered' && !this.isIdle) return
    this.#client.end(lastWord)
    this.#home.end()
  }
}

const protocolOf = (text: string | undefined): 2 | 3 | undefined => (text === '3' ? 3 : text === '2' ? 2 : undefined)
