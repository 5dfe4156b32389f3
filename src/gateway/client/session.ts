import { type MemoryConsumer, MIN_REPORTED_BYTES, type Timer } from '../../base/index.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import type { CommandFrame, SessionDeps } from '../commands/command-context.js'
import { ClientControl } from '../commands/sibling-control.js'
import type { DataUser } from '../deps.js'
import { errorText } from '../error-text.js'
import { LIMITS_BEFORE_LOGIN, limitsAfterLogin } from '../resp/command-limits.js'
import { encodeError } from '../resp/encode.js'
import { ClientCommands, type CommandsOwner } from './client-commands.js'
import type { ClientSocket } from './client-socket.js'
import type { Flow } from './flow.js'
import { guarded, guardedReceiver } from './guarded.js'
import type { Inlet } from './inlet.js'
import { ClientLane, type LaneOwner } from './lane.js'
import { Outlet } from './outlet.js'
import { ClientProfile, describeClient } from './profile.js'

/** Time in which a client that sends no more still gets replies, if some of its replies may never arrive. */
const LAST_REPLIES_MS = 1_000
const NOTHING_SUBSCRIBED = { channels: 0, patterns: 0, shardChannels: 0 }

/**
 * The connection of one client: its identity, its memory, and its end.
 *
 * ```
 *   inlet ──▶ ClientCommands ──▶ ClientLane ──▶ engine ──▶ ClientLane ──▶ outlet
 * ```
 *
 * It ends in one of three ways:
 * - finish: the client sends no more, or the server stops. The client still gets its replies, except those that may never
 *   arrive.
 * - hangUp: the client gets the bytes that were written, and nothing more.
 * - cut: at once, after a fault, or when too much is held for the client.
 */
export class Session implements CommandsOwner, LaneOwner, MemoryConsumer {
  readonly deps: SessionDeps
  readonly profile: ClientProfile
  readonly lane: ClientLane
  readonly outlet: Outlet
  readonly flow: Flow
  readonly frame: CommandFrame
  readonly control: ClientControl
  user: DataUser | undefined
  protocol: 2 | 3 = 2
  blocked = 0

  readonly #socket: ClientSocket
  readonly #inlet: Inlet
  readonly #commands: ClientCommands
  readonly #loginTimer: Timer

  constructor(inlet: Inlet, id: number, deps: SessionDeps) {
    const { socket } = inlet
    this.deps = deps
    this.#inlet = inlet
    this.#socket = socket
    this.profile = new ClientProfile(socket, id, deps.clock.now())
    this.lane = new ClientLane(deps.lanes, this, deps.guard.meter)
    this.outlet = new Outlet(inlet, deps.readerBounds, {
      drained: () => this.flow.readerCaughtUp(),
      grew: (bytes) => deps.memory.grow(this, bytes),
    })
    this.#commands = new ClientCommands(this, socket)
    this.flow = this.#commands.flow
    this.frame = this.#commands.parser
    this.control = new ClientControl(this, () => this.#commands.router.becomeRedirectTarget())
    this.#loginTimer = deps.clock.after(deps.loginTimeoutMs, () => (this.user ? undefined : this.cut()))
    inlet.receive = guardedReceiver(this, (memory, length) => this.#onData(memory, length))
    const onEnd = guarded(this, () => this.finish())
    socket.on('end', onEnd)
    socket.on('error', (error) => deps.logger.debug('gateway_client_failed', { error }))
    socket.on('close', () => this.#onClose())
  }

  get owner(): string {
    return this.deps.guard.database.databaseId
  }

  /** Bytes of an incomplete command, of unread replies, of queued commands and of names. */
  get heldBytes(): number {
    return this.#commands.heldBytes + this.outlet.queuedBytes + this.profile.heldBytes
  }

  evict(): void {
    this.#cutAndWarn('gateway_client_over_memory')
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress
  }

  get kind(): 'normal' | 'pubsub' {
    const { state } = this.lane
    return state.kind === 'pinned' && state.stream.isSubscribed ? 'pubsub' : 'normal'
  }

  get isPlainSubscriber(): boolean {
    return this.protocol === 2 && this.kind === 'pubsub'
  }

  get isQuiescent(): boolean {
    return this.flow.isOpen && this.flow.isIdle && !this.#commands.isUploading
  }

  get isClosed(): boolean {
    return this.#socket.destroyed
  }

  describe(commandBytes = 0): string {
    const { state } = this.lane
    const facts = {
      user: this.user ?? '(none)',
      protocol: this.protocol,
      ...(state.kind === 'pinned' ? state.stream.subscribed : NOTHING_SUBSCRIBED),
      ...this.#commands.router.clientState,
      inputBytes: this.#commands.parser.heldBytes + commandBytes,
      outputBytes: this.outlet.queuedBytes,
    }
    return describeClient(this.profile, facts, this.deps.clock.now())
  }

  identify(user: DataUser | undefined, protocol: 2 | 3): void {
    if (user !== undefined && user !== this.user) this.#inlet.settle()
    this.user = user
    this.protocol = protocol
    this.outlet.countIn(user === undefined ? undefined : this.deps.guard.meter)
    this.applyLimits()
  }

  /** Applies the limits of the database, which may have changed. */
  applyLimits(): void {
    const { maxRequestBytes } = this.deps.guard
    this.#commands.parser.limits = this.user ? limitsAfterLogin(maxRequestBytes) : LIMITS_BEFORE_LOGIN
  }

  refuse(error: HomeportError): void {
    this.lane.replyError(encodeError(errorText(error)))
  }

  write(bytes: Buffer): void {
    if (!this.outlet.write(bytes)) return
    this.flow.readerFellBehind()
    // A dedicated lane waits for a slow client; a shared lane cannot.
    if (this.lane.isShared && this.outlet.isLost) this.#cutAndWarn('gateway_client_not_reading')
  }

  progressed(): void {
    this.flow.repliesArrived()
    this.control.progressed()
    if (this.#commands.hasEnded && this.flow.isOpen && this.lane.pendingReplies === 0) this.hangUp()
  }

  commandsTaken(): void {
    this.control.progressed()
    if (this.#commands.hasEnded) this.#finishReplies()
  }

  hangUp(): void {
    this.flow.wait('end')
    this.#socket.destroySoon()
  }

  cut(): void {
    this.flow.wait('end')
    this.#socket.destroy()
  }

  fault(error: unknown): void {
    this.deps.logger.error('gateway_client_fault', { error, databaseId: this.owner, address: this.profile.address })
    this.cut()
  }

  /** Ends the input: the client sends no more, or the server stops. */
  finish(): void {
    this.#commands.hasEnded = true
    this.#finishReplies()
  }

  /**
   * Closes the connection if the client has sent nothing since `sinceMs` and waits for nothing. If a command waits for an
   * event, it resumes reading instead: the end of the connection comes after the input that is still unread.
   */
  endIfIdleSince(sinceMs: number): void {
    const waitsForReply = this.lane.pendingReplies > 0 && !this.#commands.isUploading
    const waits = this.lane.isPinned || this.blocked > 0 || waitsForReply
    const isIdle = this.profile.lastCommandAtMs <= sinceMs && !waits
    // A client that still reads its last replies keeps the connection, which was ended before.
    if (isIdle && !this.#socket.writableEnded) this.hangUp()
    else if (this.blocked > 0) this.#socket.resume()
  }

  #cutAndWarn(event: 'gateway_client_over_memory' | 'gateway_client_not_reading'): void {
    this.deps.logger.warn(event, { databaseId: this.owner, address: this.profile.address })
    this.cut()
  }

  #onData(memory: Buffer, length: number): void {
    this.outlet.received(length)
    this.#commands.receive(memory, length)
    if (this.heldBytes > MIN_REPORTED_BYTES) this.deps.memory.grow(this, length)
  }

  #finishReplies(): void {
    // All input was taken, so the rest of a large command will never arrive. It may have begun after the end was seen.
    if (this.#commands.isUploading && this.flow.isOpen) {
      this.cut()
      return
    }
    const { state } = this.lane
    const mayNeverCome = state.kind === 'pinned' || this.blocked > 0
    if (!mayNeverCome) this.progressed()
    else this.deps.clock.after(LAST_REPLIES_MS, () => this.cut())
    if (state.kind === 'pinned' && this.flow.isOpen) void state.stream.subscriptions().then(() => this.hangUp())
  }

  #onClose(): void {
    this.#commands.close()
    this.#loginTimer.cancel()
    this.deps.memory.remove(this)
    this.lane.leave()
    this.control.progressed()
  }
}
