import { unreachable } from '../../base/index.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import { introduce } from '../engine/introduce.js'
import type { LaneKey, Lanes } from '../engine/lanes.js'
import { type FrameFilter, PinnedStream, POISON } from '../engine/pinned-stream.js'
import type { Awaited, ReplySink } from '../engine/reply-sink.js'
import { WatchedReply } from '../engine/watched-reply.js'
import { errorText } from '../error-text.js'
import type { NearbyLane } from '../replicas/nearby-lane.js'
import { NearbyReads, type PendingRead } from '../replicas/nearby-reads.js'
import { encodeError } from '../resp/encode.js'
import { copied } from '../resp/lent-memory.js'
import { isOpen, type LaneState, type OwnLane, type PinnedLane, type Transaction } from './lane-state.js'

/** What a lane needs of the client's connection. */
export interface LaneOwner {
  /** Sends bytes to the client; they may be lent. */
  write(bytes: Buffer): void
  /** Fewer replies are owed than before. */
  progressed(): void
  /** Sends what is written, then closes: the state that the client counts on is lost. */
  hangUp(): void
  /** Closes at once: the client has part of a reply whose rest will never come. */
  cut(): void
}

/** The engine connection of one client and the replies that it owes. */
export class ClientLane implements ReplySink {
  readonly #lanes: Lanes
  readonly #owner: LaneOwner
  readonly #held: { holds: number }
  #state: LaneState = { kind: 'none' }
  #nearby: NearbyLane | undefined
  /** Called when what was sent on a pinned lane has been answered, or never will be. */
  readonly #unsettled = new Set<() => void>()
  /** Called when a pinned lane is pinned no longer. */
  #onUnpinned = (): void => {}
  #owed = 0
  #answered = 0

  /** `held` counts the lanes on which an engine may speak on its own accord. */
  constructor(lanes: Lanes, owner: LaneOwner, held: { holds: number }) {
    this.#lanes = lanes
    this.#owner = owner
    this.#held = held
  }

  get state(): LaneState {
    return this.#state
  }

  /** Replies that the client still waits for; 0 on a pinned lane, where they are not counted. */
  get owed(): number {
    return this.#owed
  }

  /** Replies that have come, our own in their order among them; on a pinned lane, commands that were sent. */
  get answered(): number {
    return this.#answered
  }

  /** The way to the replica; undefined where this node serves no region, and before login. */
  get nearby(): NearbyLane | undefined {
    return this.#nearby
  }

  /** Whether commands travel on a shared lane, be it to the primary or to the replica. */
  get isShared(): boolean {
    return this.#state.kind === 'shared'
  }

  /** Whether the engine may speak on its own accord. */
  get isPinned(): boolean {
    return this.#state.kind === 'pinned'
  }

  /** Whether commands go to the replica at the moment. */
  get isNearby(): boolean {
    return this.#state.kind === 'shared' && this.#state.reads !== undefined
  }

  /** Goes to the shared lane of `key`. Whatever state the former lane had is gone. Only while nothing is owed. */
  login(key: LaneKey): void {
    this.leave()
    this.#nearby = this.#lanes.nearby(key)
    this.#toShared(key)
  }

  /**
   * Goes on as `key` says, who may be another user or speak another version of the protocol; watched keys, subscriptions
   * and what is tracked stay. Only while nothing is owed and no transaction is open.
   * @returns what to wait for before the next command.
   */
  become(key: LaneKey): Promise<void> | undefined {
    const state = this.#state
    const hasState = state.kind === 'pinned' || (state.kind === 'own' && isOpen(state.transaction))
    if (hasState) return this.#introduce(state, key)
    this.login(key)
    return undefined
  }

  /** The engine's number of an own lane, which is not lent to anybody else then. Undefined for other lanes. */
  async number(): Promise<number | undefined> {
    const state = this.#state
    if (state.kind !== 'own' && state.kind !== 'pinned') return undefined
    state.link.isNumbered = true
    return state.link.greeting().then(
      ({ id }) => id,
      () => undefined,
    )
  }

  /** The engine of an own lane has been told that it is one of `key` from now on. */
  rename(key: LaneKey): void {
    const state = this.#state
    if (state.kind !== 'own' && state.kind !== 'pinned') return
    this.#lanes.regroup(state.link, state.key, key)
    this.#nearby = this.#lanes.nearby(key)
    if (state.kind === 'pinned') state.stream.speak(key.protocol)
    this.#state = { ...state, key }
  }

  async #introduce(state: OwnLane | PinnedLane, key: LaneKey): Promise<void> {
    const stream = state.kind === 'pinned' ? state.stream : undefined
    const greeting = await introduce(state.link, stream, this.#lanes.identityOf(key))
    if (this.#state !== state) return
    if (greeting) {
      this.rename(key)
      return
    }
    this.leave()
    this.#owner.hangUp()
  }

  /** From now on reads go to the replica, and nothing else may be sent. Only on a shared lane that owes nothing. */
  goNearby(): void {
    const state = this.#state
    if (state.kind !== 'shared' || !this.#nearby) return
    const reads = new NearbyReads(this.#nearby, this)
    this.#state = { kind: 'shared', key: state.key, link: reads.link, reads }
  }

  /** Goes back to the primary. Only while nothing is owed. */
  usePrimary(): void {
    if (this.#state.kind === 'shared') this.#toShared(this.#state.key)
  }

  /** Gives up the lane, whatever its state. */
  leave(): void {
    const last = this.#state
    this.#state = { kind: 'none' }
    if (last.kind !== 'own' && last.kind !== 'pinned') return
    if (last.kind === 'pinned') this.#unpinned()
    for (const settle of [...this.#unsettled]) settle()
    last.link.onLost = () => {}
    this.#lanes.discard(last.key, last.link)
  }

  /** Sends the `count` commands that stand at [start, end). */
  forward(bytes: Buffer, start: number, end: number, count: number): void {
    this.returnToShared()
    this.forwardHere(bytes, start, end, count)
  }

  /** The same, without leaving an own lane whose transaction has closed. */
  forwardHere(bytes: Buffer, start: number, end: number, count: number): void {
    const state = this.#state
    switch (state.kind) {
      case 'shared':
        this.#owed += count
        if (state.reads) state.reads.send(copied(bytes.subarray(start, end)), 0, end - start, count)
        else state.link.send(this, bytes, start, end, count)
        return
      case 'own':
        this.#owed += count
        state.link.send(this, bytes, start, end, count)
        return
      case 'pinned':
        this.#answered += count
        state.link.sendStreamed(bytes, start, end)
        return
      case 'none':
        throw new Error('a command was forwarded before login')
      default:
        unreachable(state)
    }
  }

  /** Sends one command without leaving an own lane, and calls `settled` when its reply has come or never will. */
  forwardWatched(bytes: Buffer, start: number, end: number, awaits: Awaited | undefined, settled: () => void): void {
    const state = this.#state
    if (state.kind !== 'shared' && state.kind !== 'own') {
      this.forwardHere(bytes, start, end, 1)
      this.settle(settled)
      return
    }
    this.#owed++
    state.link.send(new WatchedReply(this, awaits, settled), bytes, start, end, 1)
  }

  /**
   * Calls `settled` when everything that was sent on a pinned lane has been answered, or never will be. In an open
   * transaction that is at once: what is queued there is not carried out.
   */
  settle(settled: () => void): void {
    const state = this.#state
    if (state.kind !== 'pinned' || state.transaction === 'open') {
      settled()
      return
    }
    const once = (): void => void (this.#unsettled.delete(once) && settled())
    this.#unsettled.add(once)
    state.stream.whenAnswered(once)
  }

  /** Sends a further piece of a command whose beginning was sent. Not on a shared lane. */
  forwardPart(bytes: Buffer, start: number, end: number): void {
    if (this.#state.kind === 'own' || this.#state.kind === 'pinned') this.#state.link.sendStreamed(bytes, start, end)
  }

  /** Leaves an own lane on which half a command stands; what it owes fails. */
  dropOwn(): void {
    const state = this.#state
    if (state.kind !== 'own') return
    this.#toShared(state.key)
    state.link.onLost = () => {}
    this.#lanes.discard(state.key, state.link)
  }

  /** Sends a command of ours for the client, whose one reply `collector` gets and has to pass to `deliver`. */
  forwardFor(collector: ReplySink, bytes: Buffer, start: number, end: number): void {
    const state = this.#state
    if (state.kind !== 'shared' && state.kind !== 'own')
      throw new Error(`no reply can be collected on a ${state.kind} lane`)
    this.#owed++
    state.link.send(collector, bytes, start, end, 1)
  }

  /** Answers the client ourselves, behind everything that it still waits for. */
  reply(bytes: Buffer): void {
    const state = this.#state
    if (state.kind === 'pinned') {
      state.stream.insert(bytes)
      return
    }
    if (this.#owed === 0 || state.kind === 'none') {
      this.#owner.write(bytes)
      return
    }
    this.#owed++
    if (state.kind === 'shared' && state.reads) state.reads.note(bytes)
    else state.link.deliverInOrder(this, bytes)
  }

  /** The same, and makes the engine discard the open transaction, as it does for errors of its own. */
  replyAndPoison(bytes: Buffer): void {
    const state = this.#state
    if (state.kind !== 'own' || state.transaction !== 'open') {
      this.reply(bytes)
      return
    }
    this.#owed++
    state.link.sendReplaced(this, POISON, bytes)
  }

  /** Goes to an own lane. Only while nothing is owed. */
  enterOwn(transaction: Transaction): void {
    const state = this.#state
    if (state.kind === 'own') this.setTransaction(transaction)
    if (state.kind !== 'shared') return
    const link = this.#lanes.lend(state.key)
    link.onLost = () => this.#onLost()
    link.hasState = isOpen(transaction)
    this.#state = { kind: 'own', key: state.key, link, transaction }
  }

  /** Notes what a command of the client does to its transaction. */
  setTransaction(transaction: Transaction): void {
    if (this.#state.kind !== 'own' && this.#state.kind !== 'pinned') return
    this.#state.link.hasState = isOpen(transaction)
    this.#state = { ...this.#state, transaction }
  }

  /** Lets the engine speak on its own accord from now on. Only on an own lane that owes nothing. */
  pin(): void {
    const state = this.#state
    if (state.kind !== 'own') return
    const ends = {
      toClient: (bytes: Buffer) => {
        this.#nearby?.sawPrimary()
        this.#owner.write(bytes)
      },
      toEngine: (bytes: Buffer) => state.link.sendStreamed(bytes, 0, bytes.length),
    }
    const stream = new PinnedStream(ends, state.key.protocol)
    const gate = stream.behind(state.link.replyLimits)
    state.link.streamTo((chunk) => gate.push(chunk))
    this.#held.holds++
    this.#state = { ...state, kind: 'pinned', stream }
  }

  /** The engine no longer speaks on its own accord. Only on a pinned lane on which everything sent has been answered. */
  unpin(): void {
    const state = this.#state
    if (state.kind !== 'pinned') return
    const { key, link, transaction } = state
    link.streamTo(undefined)
    this.#unpinned()
    this.#state = { kind: 'own', key, link, transaction }
  }

  #unpinned(): void {
    this.#held.holds--
    this.#onUnpinned()
    this.#onUnpinned = () => {}
  }

  /** On a pinned lane: every frame goes through `filter` from now on; `ended` is called when it is pinned no longer. */
  filterWith(filter: FrameFilter, ended: () => void): void {
    if (this.#state.kind !== 'pinned') return
    this.#state.stream.filterWith(filter)
    this.#onUnpinned = ended
  }

  /** The client reads too slowly. On a lane of its own the engine is made to wait; otherwise nothing happens. */
  hold(): void {
    if (this.#state.kind === 'own' || this.#state.kind === 'pinned') this.#state.link.pauseReading()
  }

  /** The client has caught up. */
  unhold(): void {
    if (this.#state.kind === 'own' || this.#state.kind === 'pinned') this.#state.link.resumeReading()
  }

  deliver(chunk: Buffer, start: number, end: number, completed: number): void {
    this.#nearby?.sawPrimary()
    this.deliverReply(chunk, start, end, completed)
  }

  /** The same for replies of the replica. */
  deliverReply(chunk: Buffer, start: number, end: number, completed: number): void {
    this.#owed -= completed
    this.#answered += completed
    this.#owner.write(start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end))
    if (completed > 0) this.#owner.progressed()
  }

  /** What the replica cannot answer goes to the primary, in its order, with everything that comes. */
  retryOnPrimary(pending: readonly PendingRead[]): void {
    this.usePrimary()
    const state = this.#state
    if (state.kind !== 'shared') return
    for (const item of pending) {
      if (item.kind === 'note') state.link.deliverInOrder(this, item.bytes)
      else state.link.send(this, item.bytes, item.start, item.end, item.count)
    }
  }

  fail(count: number, error: HomeportError, partial: boolean): void {
    this.#nearby?.sawPrimary()
    this.#owed -= count
    this.#answered += count
    if (partial) {
      this.#owner.cut()
      return
    }
    const text = encodeError(errorText(error))
    this.#owner.write(count === 1 ? text : Buffer.concat(new Array<Buffer>(count).fill(text)))
    this.#owner.progressed()
  }

  /** Gives an own lane back whose transaction has closed. */
  returnToShared(): void {
    const state = this.#state
    if (state.kind !== 'own' || state.transaction !== 'none' || this.#owed > 0) return
    state.link.onLost = () => {}
    this.#lanes.giveBack(state.key, state.link)
    this.#toShared(state.key)
  }

  #toShared(key: LaneKey): void {
    this.#state = { kind: 'shared', key, link: this.#lanes.shared(key), reads: undefined }
  }

  /** A transaction or subscription died with its connection; the client would go on as if it were still there. */
  #onLost(): void {
    const state = this.#state
    if (state.kind === 'pinned' || (state.kind === 'own' && isOpen(state.transaction))) {
      this.leave()
      this.#owner.hangUp()
    }
  }
}
