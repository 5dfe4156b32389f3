import { encodeCommand } from '../resp/encode.js'
import { type AskEngine, integerReply } from './engine-questions.js'

const SLOTS = 1024
const SLOT_MASK = SLOTS - 1
/** Most entries whose size is followed at a time; a database has few that are near its limit. */
const MOST_FOLLOWED = 4096
const LONGEST_INTERVAL_BYTES = 1024 * 1024
const INTERVALS_PER_LIMIT = 16
const CR = 13
const ZERO = 48
const NONE = 0

/** What is known of each slot. */
interface Slots {
  /** Bytes sent since the engine was last asked; always less than an interval. */
  readonly unseenBytes: Int32Array
  /** How many followed entries it has. */
  readonly followed: Uint16Array
}

/** What a command does to the size of an entry: adds bytes to it, or makes it so large whatever it was. */
export interface Growth {
  readonly key: Buffer
  readonly bytes: number
  readonly how: 'adds' | 'makes'
}

/**
 * Keeps entries (a key with its value) from growing past a limit, without asking the engine for every command.
 *
 * An entry cannot have grown by much more than the bytes that were sent to it. So those bytes are only added up, in
 * one of 1,024 slots by the hash of the key, and not before a slot has seen a sixteenth of the limit (at most 1 MiB)
 * the engine is asked for the size of the entry that came last (MEMORY USAGE). An entry above half of the limit is
 * *followed*: its size is known, and what is sent to it is added. A command that would take it over the limit waits
 * for a fresh answer and is refused or sent by it, so a shrunken entry takes writes at once.
 *
 * What stays possible: an entry may pass the limit by one interval, by one transaction or by one script.
 *
 * A database that nobody writes to has no slots. Those of one that falls asleep are given back without losing a byte:
 * when it is written to again, every slot begins with as much as the fullest had, so the engine is only asked earlier.
 */
export class EntryWatch {
  #slots: Slots | undefined
  /** What every slot begins with. */
  #carriedBytes = 0
  readonly #sizes = new Map<string, number>()
  #limitBytes = 0
  #intervalBytes = 0

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get limitBytes(): number {
    return this.#limitBytes
  }

  /** May be infinite. */
  set limitBytes(limitBytes: number) {
    if (limitBytes === this.#limitBytes) return
    this.#limitBytes = limitBytes
    this.#intervalBytes = Math.min(LONGEST_INTERVAL_BYTES, limitBytes / INTERVALS_PER_LIMIT)
    this.#slots?.followed.fill(0)
    this.#sizes.clear()
  }

  /**
   * For a frame whose name ends at `nameEnd` and whose first argument is a key: adds `addedBytes` to it.
   * @returns whether that is all there is to do. If not, nothing was added, and `admit` has to be asked.
   */
  passes(frame: Buffer, nameEnd: number, addedBytes: number): boolean {
    const slot = slotOfFrame(frame, nameEnd)
    const { followed, unseenBytes } = this.#slots ?? this.#newSlots()
    if (followed[slot] !== NONE) return false
    const unseen = (unseenBytes[slot] ?? 0) + addedBytes
    if (unseen >= this.#intervalBytes) return false
    unseenBytes[slot] = unseen
    return true
  }

  /**
   * Notes what a command is going to do to an entry.
   * @returns the size that the entry would have if it is above the limit, 0 if it may grow; as a promise where the
   * engine has to be asked first.
   */
  admit({ key, bytes, how }: Growth, ask: AskEngine): number | Promise<number> {
    if (bytes > this.#limitBytes) return bytes
    const slot = slotOf(key, 0, key.length)
    const known = this.#sizes.get(nameOf(key))
    if (known !== undefined) {
      const size = how === 'adds' ? known + bytes : Math.max(known, bytes)
      if (size > this.#limitBytes) return this.#decide(key, bytes, ask)
      this.#sizes.set(nameOf(key), size)
    }
    const { unseenBytes } = this.#slots ?? this.#newSlots()
    const unseen = (unseenBytes[slot] ?? 0) + bytes
    const isLookedAt = unseen >= this.#intervalBytes
    unseenBytes[slot] = isLookedAt ? 0 : unseen
    if (isLookedAt) this.#lookAfter(key, ask)
    return 0
  }

  /** The same for a command that is passed on as it comes: the engine is asked where it may grow, so much is at stake. */
  admitUpload({ key, bytes, how }: Growth, ask: AskEngine): number | Promise<number> {
    if (bytes > this.#limitBytes) return bytes
    return how === 'makes' ? 0 : this.#decide(key, bytes, ask)
  }

  /** Gives the slots back; the database falls asleep. */
  rest(): void {
    if (this.#slots) this.#carriedBytes = this.#slots.unseenBytes.reduce((most, bytes) => Math.max(most, bytes))
    this.#slots = undefined
  }

  #newSlots(): Slots {
    const slots: Slots = {
      unseenBytes: new Int32Array(SLOTS).fill(this.#carriedBytes),
      followed: new Uint16Array(SLOTS),
    }
    for (const name of this.#sizes.keys()) changeAt(slots.followed, slotOfName(name), 1)
    this.#slots = slots
    return slots
  }

  /** The engine is asked behind the command that is about to be sent. */
  #lookAfter(key: Buffer, ask: AskEngine): void {
    const copy = Buffer.from(key)
    queueMicrotask(() => {
      this.#look(copy, ask).catch(() => {
        // The engine is gone; whoever sends the next command hears of it.
      })
    })
  }

  async #decide(key: Buffer, addedBytes: number, ask: AskEngine): Promise<number> {
    const size = await this.#look(Buffer.from(key), ask)
    if (size + addedBytes > this.#limitBytes) return size + addedBytes
    if (this.#sizes.has(nameOf(key))) this.#sizes.set(nameOf(key), size + addedBytes)
    return 0
  }

  async #look(key: Buffer, ask: AskEngine): Promise<number> {
    const size = integerReply(await ask(encodeCommand(['MEMORY', 'USAGE', key])))
    this.#follow(key, size)
    return size
  }

  #follow(key: Buffer, size: number): void {
    const name = nameOf(key)
    const follows = size > this.#limitBytes / 2 && this.#sizes.size < MOST_FOLLOWED
    const change = Number(follows) - Number(this.#sizes.has(name))
    if (this.#slots) changeAt(this.#slots.followed, slotOfName(name), change)
    if (follows) this.#sizes.set(name, size)
    else this.#sizes.delete(name)
  }
}

function nameOf(key: Buffer): string {
  return key.toString('latin1')
}

function slotOfName(name: string): number {
  return slotOf(Buffer.from(name, 'latin1'), 0, name.length)
}

function changeAt(counts: Uint16Array, slot: number, change: number): void {
  counts[slot] = (counts[slot] ?? 0) + change
}

function slotOf(bytes: Buffer, start: number, end: number): number {
  let hash = 0
  for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + (bytes[at] ?? 0)) | 0
  return (hash ^ (hash >>> 10)) & SLOT_MASK
}

/** The slot of the argument behind the name: `\r\n$3\r\nkey\r\n`. A command without one gets any slot. */
function slotOfFrame(frame: Buffer, nameEnd: number): number {
  let at = nameEnd + 3
  let length = 0
  while (at < frame.length && frame[at] !== CR) length = length * 10 + (frame[at++] ?? 0) - ZERO
  const start = at + 2
  return slotOf(frame, start, Math.min(start + length, frame.length))
}
