import type { ServedCommand } from '../commands/command-table.js'
import { forEngine } from '../commands/script-flags.js'
import type { FrameFilter } from '../engine/dedicated-stream.js'
import type { Argument } from '../resp/encode.js'
import { commandText } from './command-text.js'

/** A command that a client has sent. */
export interface SentCommand {
  readonly row: ServedCommand
  /** The words, the name first; of a command that is still coming, those that have come. */
  readonly words: readonly Argument[]
  /** Where the client connects from. */
  readonly address: string
  /** Whether all words are there. */
  readonly isWhole: boolean
}

/** What a client that monitors is sent its lines through. */
export interface MonitorEnds {
  /** Puts a line of ours behind everything that the engine has said so far. */
  readonly show: (line: Buffer) => void
  /** The present, Unix milliseconds. */
  readonly now: () => number
}

interface Note {
  readonly address: string
  /** What is shown in place of the engine's words, where it was sent others than the client's. */
  readonly text?: string
}

/** Commands are told apart by so many characters of their text. */
const KEY_CHARACTERS = 512
/** Of a command that the gateway answers itself, so much is shown. */
const TEXT_CHARACTERS = 4_096
/** Commands that were sent and whose line has not come: refused ones never have any. */
const MOST_NOTES = 4_096
const MOST_BEGINNINGS = 64
const UNKNOWN_ADDRESS = '0.0.0.0:0'
const NOTHING = Buffer.alloc(0)
const LINE = /^\+\d+\.\d+ \[\d+ (unix:)?/
const SOURCE_END = '] "'
/** What Homeport sends to engines for itself. */
const OURS =
  /^"(?:acl|auth|client|command|config|dbsize|debug|function|hello|info|latency|memory|ping|psync|replconf|replicaof|reset|role|script|slowlog|xinfo|xlen)"/i
/** What no engine shows either: commands that administer. */
const NEVER_SHOWN = /^(?:ACL\|(?!WHOAMI)|CONFIG\||CLIENT\|(?:LIST|KILL|NO-EVICT)|MONITOR)/

/** The clients that monitor one database, and what is sent to its engine while they do. */
export class Monitors {
  readonly #views = new Set<MonitorView>()

  /** Whether anybody monitors. */
  get isWatched(): boolean {
    return this.#views.size > 0
  }

  /** Somebody monitors from now on, until `end` is called of what is returned. */
  watch(ends: MonitorEnds): MonitorView {
    const view = new MonitorView(ends, () => this.#views.delete(view))
    this.#views.add(view)
    return view
  }

  /** A command of a client has been sent to the engine, or was answered without it. */
  note(sent: SentCommand): void {
    const { row } = sent
    if (NEVER_SHOWN.test(row.name)) return
    if (row.state === 'session' || row.state === 'managed') {
      const text = commandText(redacted(row.name, sent.words), TEXT_CHARACTERS)
      for (const view of this.#views) view.show(sent.address, text)
      return
    }
    const words = wordsForEngine(sent)
    const text = words === sent.words ? undefined : commandText(sent.words, TEXT_CHARACTERS)
    const key = keyOf(commandText(words, KEY_CHARACTERS))
    const note: Note = { address: sent.address, ...(text === undefined ? {} : { text }) }
    for (const view of this.#views) sent.isWhole ? view.expect(key, note) : view.expectBeginning(key, note)
  }
}

/**
 * What one client that monitors is shown: the lines of the engine, which knows what was carried out and when, with the
 * addresses of those who sent the commands, which only the gateway knows; of what the gateway answers, lines of its own;
 * nothing of what Homeport asks the engine for itself.
 */
export class MonitorView {
  /** What the frames of the engine go through. */
  readonly filter: FrameFilter = (frame) => this.#shown(frame)
  readonly #ends: MonitorEnds
  readonly #onEnd: () => void
  readonly #notes = new Map<string, Note[]>()
  #noted = 0
  #beginnings: { readonly key: string; readonly note: Note }[] = []

  constructor(ends: MonitorEnds, onEnd: () => void) {
    this.#ends = ends
    this.#onEnd = onEnd
  }

  /** The client monitors no longer. */
  end(): void {
    this.#onEnd()
  }

  /** The engine is going to show a command with this key. */
  expect(key: string, note: Note): void {
    const known = this.#notes.get(key)
    if (known) known.push(note)
    else this.#notes.set(key, [note])
    this.#noted++
    if (this.#noted <= MOST_NOTES) return
    const [oldest] = this.#notes
    if (!oldest) return
    this.#noted -= oldest[1].length
    this.#notes.delete(oldest[0])
  }

  /** The engine is going to show a command whose text begins so. */
  expectBeginning(key: string, note: Note): void {
    this.#beginnings.push({ key, note })
    if (this.#beginnings.length > MOST_BEGINNINGS) this.#beginnings.shift()
  }

  /** Shows a command that no engine is sent. */
  show(address: string, text: string): void {
    const nowMs = this.#ends.now()
    const seconds = `${Math.floor(nowMs / 1000)}.${String(Math.floor((nowMs % 1000) * 1000)).padStart(6, '0')}`
    this.#ends.show(Buffer.from(`+${seconds} [0 ${address}] ${text}\r\n`, 'latin1'))
  }

  #shown(frame: Buffer): Buffer {
    const head = LINE.exec(frame.toString('latin1', 0, 64))
    const sourceEnd = head ? frame.indexOf(SOURCE_END) : -1
    // Lines of scripts have no source that anybody would have to hide.
    if (!head || sourceEnd < 0 || head[1] === undefined) return frame
    const textStart = sourceEnd + SOURCE_END.length - 1
    const begin = frame.toString('latin1', textStart, textStart + KEY_CHARACTERS + 2)
    const note = this.#take(keyOf(begin.replace(/\r\n$/, '')))
    if (!note && OURS.test(begin)) return NOTHING
    const start = head[0].slice(0, -'unix:'.length)
    const source = Buffer.from(`${start}${note?.address ?? UNKNOWN_ADDRESS}] `, 'latin1')
    const text = note?.text === undefined ? frame.subarray(textStart) : Buffer.from(`${note.text}\r\n`, 'latin1')
    return Buffer.concat([source, text])
  }

  #take(key: string): Note | undefined {
    const notes = this.#notes.get(key)
    const note = notes?.shift()
    if (notes && notes.length === 0) this.#notes.delete(key)
    if (note) {
      this.#noted--
      return note
    }
    const at = this.#beginnings.findIndex(({ key: beginning }) => key.startsWith(beginning))
    return at < 0 ? undefined : this.#beginnings.splice(at, 1)[0]?.note
  }
}

/** Engines write names as they were sent, in any case. */
function keyOf(text: string): string {
  return text.slice(0, KEY_CHARACTERS).toLowerCase()
}

/** What the engine gets in place of the client's words, where it gets others. */
function wordsForEngine({ row, words, isWhole }: SentCommand): readonly Argument[] {
  if (row.state === 'observed') return [...row.name.split('|'), ...words.slice(row.name.includes('|') ? 2 : 1)]
  return (isWhole ? forEngine(row.name, words) : undefined) ?? words
}

/** Passwords are shown to nobody. */
function redacted(name: string, words: readonly Argument[]): readonly Argument[] {
  if (name === 'AUTH') return words.map((word, at) => (at === 0 ? word : '(redacted)'))
  if (name !== 'HELLO') return words
  const auth = words.findIndex((word) => word.toString().toUpperCase() === 'AUTH')
  return auth < 0 ? words : words.map((word, at) => (at === auth + 1 || at === auth + 2 ? '(redacted)' : word))
}
