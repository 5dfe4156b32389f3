import { hash } from 'node:crypto'
import { encodeCommand } from '../resp/encode.js'
import { type AskEngine, integerReply } from './engine-questions.js'

const SLOTS = 1024
const SLOT_MASK = SLOTS - 1
/** Most entries whose size is tracked; a database has few that are near its limit. */
const MAX_TRACKED = 4096
/** Longer keys are kept as digests: thousands of 32 KiB each would use memory that no limit counts. */
const MAX_NAME_LENGTH = 64
const MAX_INTERVAL_BYTES = 1024 * 1024
const INTERVALS_PER_LIMIT = 16
const CR = 13
const ZERO = 48
const NONE = 0

/** The counts of each slot. */
interface Slots {
  /** Bytes sent since the engine was last asked; always less than an interval. */
  readonly unseenBytes: Int32Array
  /** Number of tracked entries. */
  readonly tracked: Uint16Array
}

/** An entry whose size is known. */
interface Tracked {
  readonly slot: number
  readonly bytes: number
}

/** How a command changes the size of an entry: adds bytes to it, or makes it that large. */
export interface Growth {
  readonly key: Buffer
  readonly bytes: number
  readonly how: 'adds' | 'makes'
}

/**
 * Keeps entries (a key with its value) from growing past a limit, without asking the engine for every command.
 *
 * An entry cannot grow by much more than the bytes that were sent to it. So those bytes are added up, in one of 1,024
 * slots by the hash of the key. When a slot has seen a sixteenth of the limit (at most 1 MiB), the watch asks the engine for
 * the size of the entry that was last written (MEMORY USAGE). An entry above half of the limit is *tracked*: its size is
 * known, and bytes sent to it are added. A command that would take it over the limit waits for a fresh size, which decides
 * whether the command is sent. So an entry that has shrunk accepts writes at once.
 *
 * An entry may still pass the limit by one interval, by one transaction or by one script.
 *
 * A database without writes has no slots. One that falls asleep frees its slots without losing a byte: at the next write
 * every slot starts with the count of the fullest, so the engine is only asked earlier.
 */
export class EntryWatch {
  #slots: Slots | undefined
  /** The count that every slot starts with. */
  #carriedBytes = 0
  /** Tracked entries by name, in the order of the engine's answers: the oldest answer is first. */
  readonly #entries = new Map<string, Tracked>()
  #limitBytes = 0
  #intervalBytes = 0

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get limitBytes(): number {
    return this.#limitBytes
  }

  /** Changes the limit, which may be infinite. */
  set limitBytes(limitBytes: number) {
    if (limitBytes === this.#limitBytes) return
    this.#limitBytes = limitBytes
    this.#intervalBytes = Math.min(MAX_INTERVAL_BYTES, limitBytes / INTERVALS_PER_LIMIT)
    this.#slots?.tracked.fill(0)
    this.#entries.clear()
  }

  /**
   * Adds `addedBytes` to the key that is the first argument of a frame whose name ends at `nameEnd`.
   * @returns false when nothing was added and `admit` has to be asked
   */
  passes(frame: Buffer, nameEnd: number, addedBytes: number): boolean {
    const slot = slotOfFrame(frame, nameEnd)
    const { tracked, unseenBytes } = this.#slots ?? this.#newSlots()
    if (tracked[slot] !== NONE) return false
    const unseen = (unseenBytes[slot] ?? 0) + addedBytes
    if (unseen >= this.#intervalBytes) return false
    unseenBytes[slot] = unseen
    return true
  }

  /**
   * Records what a command will do to an entry.
   * @returns the size of the entry if it would be above the limit, 0 if the command may be sent; a promise when the engine
   * has to be asked first
   */
  admit({ key, bytes, how }: Growth, ask: AskEngine): number | Promise<number> {
    if (bytes > this.#limitBytes) return bytes
    const slot = slotOf(key)
    const known = this.#entries.get(nameOf(key))
    if (known !== undefined) {
      const size = how === 'adds' ? known.bytes + bytes : Math.max(known.bytes, bytes)
      if (size > this.#limitBytes) return this.#decide(key, bytes, ask)
      this.#entries.set(nameOf(key), { slot, bytes: size })
    }
    const { unseenBytes } = this.#slots ?? this.#newSlots()
    const unseen = (unseenBytes[slot] ?? 0) + bytes
    const isDue = unseen >= this.#intervalBytes
    unseenBytes[slot] = isDue ? 0 : unseen
    if (isDue) this.#askSizeAfter(key, ask)
    return 0
  }

  /** Like `admit`, for a streamed command. It is large, so the engine is always asked when it adds bytes. */
  admitUpload({ key, bytes, how }: Growth, ask: AskEngine): number | Promise<number> {
    if (bytes > this.#limitBytes) return bytes
    return how === 'makes' ? 0 : this.#decide(key, bytes, ask)
  }

  /** Frees the slots: the database falls asleep. */
  freeSlots(): void {
    if (this.#slots) this.#carriedBytes = this.#slots.unseenBytes.reduce((most, bytes) => Math.max(most, bytes))
    this.#slots = undefined
  }

  #newSlots(): Slots {
    const slots: Slots = {
      unseenBytes: new Int32Array(SLOTS).fill(this.#carriedBytes),
      tracked: new Uint16Array(SLOTS),
    }
    for (const { slot } of this.#entries.values()) changeAt(slots.tracked, slot, 1)
    this.#slots = slots
    return slots
  }

  /** Asks the engine after the command that is about to be sent. */
  #askSizeAfter(key: Buffer, ask: AskEngine): void {
    const copy = Buffer.from(key)
    queueMicrotask(() => {
      this.#askSize(copy, ask).catch(() => {
        // The engine is gone; the next command reports it.
      })
    })
  }

  async #decide(key: Buffer, addedBytes: number, ask: AskEngine): Promise<number> {
    const size = await this.#askSize(Buffer.from(key), ask)
    if (size + addedBytes > this.#limitBytes) return size + addedBytes
    if (this.#entries.has(nameOf(key))) this.#entries.set(nameOf(key), { slot: slotOf(key), bytes: size + addedBytes })
    return 0
  }

  async #askSize(key: Buffer, ask: AskEngine): Promise<number> {
    const size = integerReply(await ask(encodeCommand(['MEMORY', 'USAGE', key])))
    this.#track(key, size)
    return size
  }

  #track(key: Buffer, bytes: number): void {
    const name = nameOf(key)
    this.#forget(name)
    if (bytes <= this.#limitBytes / 2) return
    // An entry that was deleted is never asked about again, so the oldest one is dropped for a new one.
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined && this.#entries.size >= MAX_TRACKED) this.#forget(oldest)
    const slot = slotOf(key)
    this.#entries.set(name, { slot, bytes })
    if (this.#slots) changeAt(this.#slots.tracked, slot, 1)
  }

  #forget(name: string): void {
    const known = this.#entries.get(name)
    if (!known) return
    this.#entries.delete(name)
    if (this.#slots) changeAt(this.#slots.tracked, known.slot, -1)
  }
}

function nameOf(key: Buffer): string {
  return key.length > MAX_NAME_LENGTH ? hash('sha256', key, 'base64') : key.toString('latin1')
}

function changeAt(counts: Uint16Array, slot: number, change: number): void {
  counts[slot] = (counts[slot] ?? 0) + change
}

function slotOf(bytes: Buffer, start = 0, end = bytes.length): number {
  let hash = 0
  for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + (bytes[at] ?? 0)) | 0
  return (hash ^ (hash >>> 10)) & SLOT_MASK
}

/** The slot of the argument after the name: `\r\n$3\r\nkey\r\n`. For a command without arguments, any slot. */
function slotOfFrame(frame: Buffer, nameEnd: number): number {
  let at = nameEnd + 3
  let length = 0
  while (at < frame.length && frame[at] !== CR) length = length * 10 + (frame[at++] ?? 0) - ZERO
  const start = at + 2
  return slotOf(frame, start, Math.min(start + length, frame.length))
}
