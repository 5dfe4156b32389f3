import type { DatabaseMeter } from '../../telemetry/index.js'
import type { ServedCommand } from '../commands/command-table.js'
import { LatencySample } from '../limits/latency-sample.js'
import type { CommandParser } from '../resp/command-parser.js'
import type { ClientLane } from './lane.js'
import type { PauseHold } from './pause-hold.js'

const EMPTY = Buffer.alloc(0)

/** Says how many commands may be sent. */
export interface GroupFlow {
  /** Whether no more than `count` further commands may be sent. */
  isFull(count: number): boolean
  commandsSent(): void
}

/** Stateless commands of one client that follow each other in one buffer, and are sent to its lane together. */
export class CommandGroup {
  readonly #lane: ClientLane
  readonly #flow: GroupFlow
  readonly #hold: PauseHold
  readonly #latency: LatencySample
  #buffer: Buffer = EMPTY
  #start = 0
  #end = 0
  #count = 0
  /** Whether the last of them is a write. */
  #writes = false
  /** Whether any of them may write; PUBLISH counts, for example. */
  #mayWrite = false

  constructor(lane: ClientLane, flow: GroupFlow, hold: PauseHold, meter: DatabaseMeter) {
    this.#lane = lane
    this.#flow = flow
    this.#hold = hold
    this.#latency = new LatencySample(meter)
  }

  get isEmpty(): boolean {
    return this.#count === 0
  }

  /** Adds the present frame. First sends the group if the frame does not follow it in the buffer; then, if it is full. */
  add(
    { frameBuffer, frameStart, frameEnd }: CommandParser,
    { access, mayWrite }: Pick<ServedCommand, 'access' | 'mayWrite'>,
  ): void {
    if (this.#buffer !== frameBuffer || this.#end !== frameStart) this.send()
    if (this.#count === 0) {
      this.#buffer = frameBuffer
      this.#start = frameStart
    }
    this.#end = frameEnd
    this.#writes = access === 'write'
    if (mayWrite) this.#mayWrite = true
    this.#count++
    if (this.#flow.isFull(this.#count)) this.send()
  }

  /** Sends the group and empties it. */
  send(): void {
    const buffer = this.#buffer
    const count = this.#count
    if (count === 0) return
    if (this.#mayWrite) this.#hold.noteWrites()
    this.#count = 0
    this.#mayWrite = false
    this.#buffer = EMPTY
    const lane = this.#lane
    lane.forward(buffer, this.#start, this.#end, count)
    if (lane.state.kind !== 'pinned') this.#latency.begin(lane.answered + lane.pendingReplies, this.#writes)
    this.#flow.commandsSent()
  }

  /** Call it when replies have arrived. */
  progressed(): void {
    this.#latency.answered(this.#lane.answered)
  }
}
