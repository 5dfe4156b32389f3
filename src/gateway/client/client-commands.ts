import { refusal } from '../../contract/errors/errors.js'
import type { CommandContext } from '../commands/command-context.js'
import { findCommand } from '../commands/command-table.js'
import { Permits } from '../commands/permits.js'
import { CommandRouter, monitorCommand } from '../commands/router.js'
import { errorText } from '../error-text.js'
import { Steering } from '../replicas/steering.js'
import { CommandParser } from '../resp/command-parser.js'
import { encodeError } from '../resp/encode.js'
import type { ClientSocket } from './client-socket.js'
import { Flow, type FlowOwner } from './flow.js'
import type { Outlet } from './outlet.js'
import { PauseHold } from './pause-hold.js'
import { Upload } from './upload.js'

/** Effort of a thousand empty commands, in commands that are only passed on. */
const EFFORT_OF_EMPTY = 64
/** Bytes of input that are held while the next command has to wait. Above that, reading stops. */
const MAX_WAITING_INPUT_BYTES = 256 * 1024

/** The client that sends the commands. */
export interface CommandsOwner extends CommandContext {
  readonly outlet: Outlet
  /** Called when all commands that may be taken now were taken. */
  commandsTaken(): void
}

/**
 * Takes the commands of one client from its input, in order.
 *
 * ```
 *   input ──▶ parser ──frame──▶ rate, pause, replica or primary ──▶ stateless, within the limits ──▶ group
 *             │    ▲                    │                      └──▶ every other one ─────────▶ router
 *             │    └── retryWhen ───────┴── from any step on
 *             └──large argument, piece by piece──▶ upload
 * ```
 *
 * - The commands of the group are sent together, before any other command.
 * - A command that has to wait is taken again from its first byte, before any later command. Meanwhile the flow is not open,
 *   and input is held, up to a bound.
 * - After bytes that are no command, nothing more can be parsed: the client is treated as one that sends no more.
 */
export class ClientCommands implements FlowOwner {
  readonly flow: Flow
  readonly router: CommandRouter
  /** The parser, whose frame is the present command. */
  readonly parser = new CommandParser()
  /** The client sends no more. */
  hasEnded = false
  readonly #client: CommandsOwner
  readonly #socket: ClientSocket
  readonly #permits: Permits
  readonly #hold: PauseHold
  readonly #steering: Steering
  readonly #upload: Upload

  constructor(client: CommandsOwner, socket: ClientSocket) {
    const { lane, outlet, deps } = client
    this.#client = client
    this.#socket = socket
    this.#hold = new PauseHold(client)
    this.flow = new Flow(this, { lane, outlet, parser: this.parser, hold: this.#hold, guard: deps.guard })
    this.#permits = new Permits(client)
    this.#steering = new Steering(lane, this.flow)
    this.router = new CommandRouter(client, this.#permits, this.#hold)
    this.#upload = new Upload(client, this.parser, this.#permits, this.#hold)
  }

  /** Bytes of input that was not handled yet, and of commands that wait for EXEC. */
  get heldBytes(): number {
    return this.parser.heldBytes + this.router.heldBytes
  }

  /** Whether the engine waits for the rest of a large command. */
  get isUploading(): boolean {
    return this.#upload.isSending
  }

  /** Call it when the connection has closed. */
  close(): void {
    this.flow.wait('end')
    this.#hold.close()
  }

  /** Takes the first `length` bytes of `memory`, which may be lent. */
  receive(memory: Buffer, length: number): void {
    if (this.hasEnded) return
    this.parser.push(memory, length)
    if (this.flow.isOpen) this.#take()
    else if (this.parser.heldBytes > MAX_WAITING_INPUT_BYTES) this.#socket.pause()
    this.parser.release()
  }

  takeMore(): void {
    if (this.#socket.isPaused()) this.#socket.resume()
    this.#take()
  }

  stopReading(): void {
    this.#socket.pause()
  }

  fault(error: unknown): void {
    this.#client.fault(error)
  }

  /** Takes commands. A fault in one client's command must not end the process, and with it every other connection. */
  #take(): void {
    try {
      this.#takeAll()
    } catch (error) {
      this.fault(error)
    }
  }

  #takeAll(): void {
    const { user, profile, deps } = this.#client
    profile.lastCommandAtMs = user ? deps.guard.touch() : deps.clock.now()
    if (user) this.#waitForBandwidth()
    while (this.flow.isOpen && this.#takeCommand()) this.flow.commandTaken()
    this.flow.group.send()
    this.parser.release()
    this.#client.commandsTaken()
  }

  #waitForBandwidth(): void {
    const { waitMs } = this.#client.deps.guard.bandwidth
    if (waitMs === 0 || !this.flow.isOpen) return
    this.flow.wait('rate')
    this.#client.deps.clock.after(waitMs, () => this.flow.proceed('rate'))
  }

  /** @returns whether there may be another command. */
  #takeCommand(): boolean {
    if (this.#client.outlet.replies === 'skipping' && !this.#isSkipped()) return false
    switch (this.parser.next()) {
      case 'frame':
        this.#onFrame()
        return true
      case 'large':
        this.#upload.consider()
        return true
      case 'part':
        this.#upload.pass()
        this.flow.commandsSent()
        return true
      case 'last':
        this.#upload.end()
        this.#conclude(this.#beginSkip())
        return true
      case 'empty':
        this.flow.addEffort(EFFORT_OF_EMPTY)
        return true
      case 'oversize':
        this.#onOversize()
        return true
      case 'broken':
        this.#onBroken()
        return false
      case 'more':
        return false
    }
  }

  /** Whether the reply that the client does not want has arrived. */
  #isSkipped(): boolean {
    this.flow.group.send()
    if (this.#client.lane.pendingReplies > 0) {
      this.flow.wait('quiet')
      return false
    }
    this.#client.outlet.replies = 'on'
    return true
  }

  #onFrame(): void {
    const client = this.#client
    if (client.user && !this.#permits.takeToken()) return
    const { frameBuffer, nameStart, nameEnd } = this.parser
    const command = findCommand(frameBuffer, nameStart, nameEnd)
    client.profile.lastCommand = command?.name
    if (!this.#hold.passes(command) || !this.#steering.passes(command)) return
    const skips = this.#beginSkip()
    if (command?.allowed && command.state === 'stateless' && client.user && this.#permits.passes(command)) {
      client.deps.guard.count(command, 1)
      this.flow.group.add(this.parser, command)
    } else if (this.flow.flush()) {
      this.router.route(command)
      // Commands of more than 32 KiB take this branch too, and may fill the window or the engine.
      this.flow.commandsSent()
    }
    if (client.deps.guard.monitors.isWatched) monitorCommand(client, command)
    this.#conclude(skips)
  }

  /** @returns whether the client does not want the reply to the present command. */
  #beginSkip(): boolean {
    if (this.#client.outlet.replies !== 'skip') return false
    this.#client.outlet.replies = 'skipping'
    return true
  }

  /** Ends the handling of the present command, which was handled or will be taken again. */
  #conclude(skips: boolean): void {
    if (skips && this.flow.willRetry) this.#client.outlet.replies = 'skip'
    this.#permits.conclude()
  }

  #onOversize(): void {
    this.flow.group.send()
    const { maxRequestBytes: limitBytes } = this.parser.limits
    const error = refusal('request_too_large', { limitBytes, actualBytes: this.parser.actualBytes })
    if (!this.#upload.abort(encodeError(errorText(error)))) this.#client.refuse(error)
    this.#conclude(this.#beginSkip())
  }

  #onBroken(): void {
    this.flow.group.send()
    const problem = encodeError(`ERR ${this.parser.problem}`)
    if (!this.#upload.abort(problem)) this.#client.lane.reply(problem)
    this.hasEnded = true
  }
}
