import { unreachable } from '../../base/index.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import { DedicatedStream, type FrameFilter, introduce, POISON } from '../engine/dedicated-stream.js'
import type { LaneKey, Lanes } from '../engine/lanes.js'
import type { Awaited, ReplySink } from '../engine/reply-sink.js'
import { WatchedReply } from '../engine/reply-sink.js'
import { isNotServedHere } from '../engine/unsent.js'
import { errorText } from '../error-text.js'
import type { ReplicaLane } from '../replicas/replica-lane.js'
import { type PendingRead, ReplicaReads } from '../replicas/replica-reads.js'
import { encodeError } from '../resp/encode.js'
import { keep } from '../resp/lent-memory.js'
import { type DedicatedLane, hasState, isFree, isOpen, type LaneState, type Transaction } from './lane-state.js'

/** The client's connection, as its lane needs it. */
export interface LaneOwner {
  /** Sends bytes to the client; they may be lent. */
  write(bytes: Buffer): void
  /** Replies have arrived, or failed. */
  progressed(): void
  /** Closes the connection after sending what is written. For a client that has lost state on which it relies. */
  hangUp(): void
  /** Closes the connection at once. For a client that has part of a reply whose rest will never arrive. */
  cut(): void
}

/** One client's connection to an engine, and its pending replies. See `LaneState` for the kinds of lanes. */
export class ClientLane implements ReplySink {
  readonly #lanes: Lanes
  readonly #owner: LaneOwner
  readonly #holds: { holds: number }
  #state: LaneState = { kind: 'none' }
  #replica: ReplicaLane | undefined
  /** Called when the commands sent on a pinned lane were answered, or never will be. */
  readonly #awaitingReplies = new Set<() => void>()
  /** Called when the lane is no longer pinned. */
  #onUnpinned = (): void => {}
  #pendingReplies = 0
  #answered = 0

  /** `holds` counts pinned lanes, which keep the database awake. */
  constructor(lanes: Lanes, owner: LaneOwner, holds: { holds: number }) {
    this.#lanes = lanes
    this.#owner = owner
    this.#holds = holds
  }

  get state(): LaneState {
    return this.#state
  }

  /** Replies that the client waits for; 0 on a pinned lane, where they are not counted. */
  get pendingReplies(): number {
    return this.#pendingReplies
  }

  /** Number of replies that arrived, including those of the gateway. On a pinned lane it counts commands that were sent. */
  get answered(): number {
    return this.#answered
  }

  /** The replica of this node's region; undefined where the node serves no region, and before login. */
  get replica(): ReplicaLane | undefined {
    return this.#replica
  }

  /** The lane if it belongs to the client alone (dedicated or pinned). */
  get dedicated(): DedicatedLane | undefined {
    const state = this.#state
    return state.kind === 'dedicated' || state.kind === 'pinned' ? state : undefined
  }

  /** Whether the lane is a shared one, to the primary or to the replica. */
  get isShared(): boolean {
    return this.#state.kind === 'shared'
  }

  /** Whether the engine may push messages that are no replies. */
  get isPinned(): boolean {
    return this.#state.kind === 'pinned'
  }

  /** Whether commands go to the replica now. */
  get isOnReplica(): boolean {
    return this.#state.kind === 'shared' && this.#state.reads !== undefined
  }

  /** Whether a transaction is open, in which the engine queues commands. */
  get isInTransaction(): boolean {
    return this.dedicated?.transaction === 'open'
  }

  /** Moves to the shared lane of `key` and drops the state of the former lane. Only while no reply is pending. */
  login(key: LaneKey): void {
    this.leave()
    this.#replica = this.#lanes.replica(key)
    this.#toShared(key)
  }

  /**
   * Continues as `key`, which may name another user or version of the protocol. Watched keys, subscriptions and tracking
   * stay. Only while no reply is pending and no transaction is open.
   * @returns a promise that the next command has to wait for.
   */
  become(key: LaneKey): Promise<void> | undefined {
    const { dedicated } = this
    if (dedicated && hasState(dedicated)) return this.#introduce(dedicated, key)
    this.login(key)
    return undefined
  }

  /** The engine's client id of a dedicated lane, which is then not reused for other clients. Undefined for other lanes. */
  async engineClientId(): Promise<number | undefined> {
    const { dedicated } = this
    if (!dedicated) return undefined
    dedicated.link.isIdKnown = true
    return dedicated.link.greeting().then(
      ({ id }) => id,
      () => undefined,
    )
  }

  /** Call it when the engine has accepted `key` for this dedicated lane. */
  changeKey(key: LaneKey): void {
    const { dedicated } = this
    if (!dedicated) return
    this.#lanes.regroup(dedicated.link, dedicated.key, key)
    this.#replica = this.#lanes.replica(key)
    if (dedicated.kind === 'pinned') dedicated.stream.speak(key.protocol)
    this.#state = { ...dedicated, key }
  }

  async #introduce(state: DedicatedLane, key: LaneKey): Promise<void> {
    const stream = state.kind === 'pinned' ? state.stream : undefined
    const greeting = await introduce(state.link, stream, this.#lanes.identityOf(key))
    if (this.#state !== state) return
    if (greeting) {
      this.changeKey(key)
      return
    }
    this.leave()
    this.#owner.hangUp()
  }

  /** Sends reads to the replica from now on; nothing else may be sent. Only on a shared lane without pending replies. */
  useReplica(): void {
    const state = this.#state
    if (state.kind !== 'shared' || !this.#replica) return
    const reads = new ReplicaReads(this.#replica, this)
    this.#state = { kind: 'shared', key: state.key, link: reads.link, reads }
  }

  /** Returns to the primary. Only while no reply is pending. */
  usePrimary(): void {
    if (this.#state.kind === 'shared') this.#toShared(this.#state.key)
  }

  /** Gives the lane up, in any state. */
  leave(): void {
    const last = this.dedicated
    this.#state = { kind: 'none' }
    if (!last) return
    if (last.kind === 'pinned') this.#unpinned()
    for (const settle of [...this.#awaitingReplies]) settle()
    last.link.onLost = () => {}
    this.#lanes.discard(last.key, last.link)
  }

  /** Sends the `count` commands at [start, end), on the shared lane if the client needs no dedicated one any more. */
  forward(bytes: Buffer, start: number, end: number, count: number): void {
    this.returnToShared()
    this.send(bytes, start, end, count)
  }

  /** Sends commands on the present lane, even if that is a dedicated lane that the client no longer needs. */
  send(bytes: Buffer, start: number, end: number, count: number): void {
    const state = this.#state
    switch (state.kind) {
      case 'shared':
        this.#pendingReplies += count
        if (state.reads) state.reads.send(keep(bytes.subarray(start, end)), 0, end - start, count)
        else state.link.send(this, bytes, start, end, count)
        return
      case 'dedicated':
        this.#pendingReplies += count
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

  /** Sends one command on the present lane, and calls `settled` when its reply has arrived or never will. */
  sendWatched(bytes: Buffer, start: number, end: number, awaits: Awaited | undefined, settled: () => void): void {
    const state = this.#state
    if (state.kind !== 'shared' && state.kind !== 'dedicated') {
      this.send(bytes, start, end, 1)
      this.settle(settled)
      return
    }
    this.#pendingReplies++
    state.link.send(new WatchedReply(this, awaits, settled), bytes, start, end, 1)
  }

  /**
   * Calls `settled` when everything sent on a pinned lane was answered, or never will be. In an open transaction it calls
   * at once, because queued commands do not run yet.
   */
  settle(settled: () => void): void {
    const state = this.#state
    if (state.kind !== 'pinned' || state.transaction === 'open') {
      settled()
      return
    }
    const once = (): void => void (this.#awaitingReplies.delete(once) && settled())
    this.#awaitingReplies.add(once)
    state.stream.whenAnswered(once)
  }

  /** Sends another piece of a command whose beginning was sent. Not on a shared lane. */
  sendPart(bytes: Buffer, start: number, end: number): void {
    this.dedicated?.link.sendStreamed(bytes, start, end)
  }

  /** Discards a dedicated lane on which only part of a command was sent; its pending replies fail. */
  dropDedicated(): void {
    const state = this.#state
    if (state.kind !== 'dedicated') return
    this.#toShared(state.key)
    state.link.onLost = () => {}
    this.#lanes.discard(state.key, state.link)
  }

  /** Sends one command whose reply goes to `collector`, which has to pass it to `deliver`. */
  sendFor(collector: ReplySink, bytes: Buffer, start: number, end: number): void {
    const state = this.#state
    if (state.kind !== 'shared' && state.kind !== 'dedicated')
      throw new Error(`no reply can be collected on a ${state.kind} lane`)
    this.#pendingReplies++
    state.link.send(collector, bytes, start, end, 1)
  }

  /** Sends the client a reply of the gateway, after all pending replies. */
  reply(bytes: Buffer): void {
    const state = this.#state
    if (state.kind === 'pinned') {
      state.stream.insert(bytes)
      return
    }
    if (this.#pendingReplies === 0 || state.kind === 'none') {
      this.#owner.write(bytes)
      return
    }
    this.#pendingReplies++
    if (state.kind === 'shared' && state.reads) state.reads.note(bytes)
    else state.link.deliverInOrder(this, bytes)
  }

  /** Like `reply`, for an error: the engine discards the open transaction, as after errors of its own. */
  replyError(bytes: Buffer): void {
    const state = this.#state
    if (state.kind !== 'dedicated' || state.transaction !== 'open') {
      this.reply(bytes)
      return
    }
    this.#pendingReplies++
    state.link.sendReplaced(this, POISON, bytes)
  }

  /** Moves to a dedicated lane. Only while no reply is pending. */
  enterDedicated(transaction: Transaction): void {
    const state = this.#state
    if (state.kind === 'dedicated') this.setTransaction(transaction)
    if (state.kind !== 'shared') return
    const link = this.#lanes.lend(state.key)
    link.onLost = () => this.#onLost()
    link.hasState = isOpen(transaction)
    this.#state = { kind: 'dedicated', key: state.key, link, transaction }
  }

  /** Records what a command does to the client's transaction. */
  setTransaction(transaction: Transaction): void {
    const { dedicated } = this
    if (!dedicated) return
    dedicated.link.hasState = isOpen(transaction)
    this.#state = { ...dedicated, transaction }
  }

  /** Lets the engine push messages from now on. Only on a dedicated lane without pending replies. */
  pin(): void {
    const state = this.#state
    if (state.kind !== 'dedicated') return
    const stream = new DedicatedStream(state.link, state.key.protocol, (bytes) => {
      this.#replica?.sawPrimary()
      this.#owner.write(bytes)
    })
    const gate = stream.behind(state.link.replyLimits)
    state.link.streamTo((chunk) => gate.push(chunk))
    this.#holds.holds++
    this.#state = { ...state, kind: 'pinned', stream }
  }

  /** Ends the pinning: the engine pushes no more messages. Only when all commands on the pinned lane were answered. */
  unpin(): void {
    const state = this.#state
    if (state.kind !== 'pinned') return
    const { key, link, transaction } = state
    link.streamTo(undefined)
    this.#unpinned()
    this.#state = { kind: 'dedicated', key, link, transaction }
  }

  #unpinned(): void {
    this.#holds.holds--
    this.#onUnpinned()
    this.#onUnpinned = () => {}
  }

  /** Passes every frame of a pinned lane through `filter` from now on; `ended` is called when it is no longer pinned. */
  filterWith(filter: FrameFilter, ended: () => void): void {
    if (this.#state.kind !== 'pinned') return
    this.#state.stream.filterWith(filter)
    this.#onUnpinned = ended
  }

  /** Called when the client reads too slowly. A dedicated lane makes the engine wait; on other lanes nothing happens. */
  pauseReading(): void {
    this.dedicated?.link.pauseReading()
  }

  /** Called when the client has caught up. */
  resumeReading(): void {
    this.dedicated?.link.resumeReading()
  }

  deliver(chunk: Buffer, start: number, end: number, completed: number): void {
    this.#replica?.sawPrimary()
    this.deliverReply(chunk, start, end, completed)
  }

  /** Like `deliver`, for replies of the replica. */
  deliverReply(chunk: Buffer, start: number, end: number, completed: number): void {
    this.#pendingReplies -= completed
    this.#answered += completed
    this.#owner.write(start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end))
    if (completed > 0) this.#owner.progressed()
  }

  /** Sends reads that the replica did not answer to the primary, in order. Later commands follow there. */
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
    this.#replica?.sawPrimary()
    this.#pendingReplies -= count
    this.#answered += count
    if (partial) this.#owner.cut()
    // Another node becomes the home. Most clients reconnect and repeat commands without an answer.
    else if (isNotServedHere(error)) this.#owner.hangUp()
    else {
      const text = encodeError(errorText(error))
      this.#owner.write(count === 1 ? text : Buffer.concat(new Array<Buffer>(count).fill(text)))
      this.#owner.progressed()
    }
  }

  /** Gives a dedicated lane back when its transaction has ended. */
  returnToShared(): void {
    const state = this.#state
    if (state.kind !== 'dedicated' || !isFree(state) || this.#pendingReplies > 0) return
    state.link.onLost = () => {}
    this.#lanes.giveBack(state.key, state.link)
    this.#toShared(state.key)
  }

  #toShared(key: LaneKey): void {
    this.#state = { kind: 'shared', key, link: this.#lanes.shared(key), reads: undefined }
  }

  /** Disconnects a client whose transaction or subscription is lost with the connection, because it relies on them. */
  #onLost(): void {
    if (!this.dedicated || !hasState(this.dedicated)) return
    this.leave()
    this.#owner.hangUp()
  }
}
