import { HomeportError } from '../../contract/errors/errors.js'
import type { ServedCommand } from '../commands/command-table.js'
import { forEngine } from '../commands/script-flags.js'
import type { FrameFilter } from '../engine/dedicated-stream.js'
import type { Argument } from '../resp/encode.js'
import { commandText } from './command-text.js'

/** A command that a client has sent. */
export interface SentCommand {
  readonly row: ServedCommand
  /** The words, name first. If the command is still arriving, only those that have arrived. */
  readonly words: readonly Argument[]
  /** The client's address. */
  readonly address: string
  /** Whether all words have arrived. */
  readonly isWhole: boolean
}

/** The collaborators of a monitoring client. */
export interface MonitorEnds {
  /** Inserts a line of the gateway after everything that the engine has sent so far. */
  readonly show: (line: Buffer) => void
  /** The present, Unix milliseconds. */
  readonly now: () => number
}

interface Note {
  readonly address: string
  /** The client's words, if the gateway has sent the engine different ones. */
  readonly text?: string
}

/** Characters of a command's text that identify it. */
const KEY_CHARACTERS = 512
/** Most characters of a command that the gateway answers itself. */
const TEXT_CHARACTERS = 4_096
/** Most clients that monitor one database. Every command costs a note and a line for each of them. */
const MAX_MONITORS = 32
/** Most commands that wait for their line of the engine. A command that the engine refuses never gets one. */
export const MAX_NOTES = 4_096
const MAX_BEGINNINGS = 64
const UNKNOWN_ADDRESS = '0.0.0.0:0'
const NOTHING = Buffer.alloc(0)
const PUSH = 0x3e
const MINUS = 0x2d
const LINE = /^\+\d+\.\d+ \[\d+ (unix:)?/
const SOURCE_END = '] "'
/** Commands that Homeport sends to engines for itself. */
const OURS =
  /^"(?:acl|auth|client|command|config|dbsize|debug|function|hello|info|latency|memory|ping|psync|replconf|replicaof|reset|role|script|slowlog|xinfo|xlen)"/i
/** Administrative commands, which engines do not show either. */
const NEVER_SHOWN = /^(?:ACL\|(?!WHOAMI)|CONFIG\||CLIENT\|(?:LIST|KILL|NO-EVICT)|MONITOR)/

/** The clients that run MONITOR on one database. */
export class Monitors {
  readonly #views = new Set<MonitorView>()

  /** Whether any client monitors. */
  get isWatched(): boolean {
    return this.#views.size > 0
  }

  /** Clients that monitor. */
  get count(): number {
    return this.#views.size
  }

  /** The error if no further client may monitor; undefined if one may. */
  get refusal(): HomeportError | undefined {
    if (this.count < MAX_MONITORS) return undefined
    return new HomeportError('too_many_monitors', { limit: MAX_MONITORS })
  }

  /** Adds a monitoring client, until `end` of the view is called. */
  watch(ends: MonitorEnds): MonitorView {
    const view = new MonitorView(ends, () => this.#views.delete(view))
    this.#views.add(view)
    return view
  }

  /** Notes that a client's command was sent to the engine, or answered without it. */
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
 * The lines that one monitoring client sees. The engine's lines say which commands ran and when; the gateway puts in the
 * address of the client, which only it knows. Commands that the gateway answers get lines of its own. Homeport's own
 * questions to the engine are hidden.
 */
export class MonitorView {
  /** The filter for the frames of the engine, from the reply to MONITOR on. */
  readonly filter: FrameFilter = (frame) => this.#shown(frame)
  readonly #ends: MonitorEnds
  readonly #onEnd: () => void
  readonly #notes = new Map<string, Note[]>()
  #noteCount = 0
  #state: 'asked' | 'accepted' | 'refused' = 'asked'
  #beginnings: { readonly key: string; readonly note: Note }[] = []

  constructor(ends: MonitorEnds, onEnd: () => void) {
    this.#ends = ends
    this.#onEnd = onEnd
  }

  /** Whether the engine has refused MONITOR, which not every user may run. */
  get isRefused(): boolean {
    return this.#state === 'refused'
  }

  /** Removes the client. */
  end(): void {
    this.#onEnd()
  }

  /** Notes that the engine will show a command with this key. */
  expect(key: string, note: Note): void {
    const known = this.#notes.get(key)
    if (known) known.push(note)
    else this.#notes.set(key, [note])
    this.#noteCount++
    if (this.#noteCount <= MAX_NOTES) return
    const [oldest] = this.#notes
    if (!oldest) return
    this.#noteCount -= oldest[1].length
    this.#notes.delete(oldest[0])
  }

  /** Notes that the engine will show a command whose text begins with this key. */
  expectBeginning(key: string, note: Note): void {
    this.#beginnings.push({ key, note })
    if (this.#beginnings.length > MAX_BEGINNINGS) this.#beginnings.shift()
  }

  /** Shows a command that is not sent to an engine, once the engine has accepted MONITOR. */
  show(address: string, text: string): void {
    if (this.#state !== 'accepted') return
    const nowMs = this.#ends.now()
    const seconds = `${Math.floor(nowMs / 1000)}.${String(Math.floor((nowMs % 1000) * 1000)).padStart(6, '0')}`
    this.#ends.show(Buffer.from(`+${seconds} [0 ${address}] ${text}\r\n`, 'latin1'))
  }

  /** The first frame that is no push is the reply to MONITOR. */
  #noteReply(frame: Buffer): void {
    if (frame[0] === PUSH) return
    this.#state = frame[0] === MINUS ? 'refused' : 'accepted'
    if (this.isRefused) this.end()
  }

  #shown(frame: Buffer): Buffer {
    if (this.#state === 'asked') this.#noteReply(frame)
    const head = LINE.exec(frame.toString('latin1', 0, 64))
    const sourceEnd = head ? frame.indexOf(SOURCE_END) : -1
    // Lines of scripts have no address to replace.
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
      this.#noteCount--
      return note
    }
    const at = this.#beginnings.findIndex(({ key: beginning }) => key.startsWith(beginning))
    return at < 0 ? undefined : this.#beginnings.splice(at, 1)[0]?.note
  }
}

/** The key of a command. In lower case, because engines show names in the case in which they were sent. */
function keyOf(text: string): string {
  return text.slice(0, KEY_CHARACTERS).toLowerCase()
}

/** The words that the engine gets, which may differ from the client's. */
function wordsForEngine({ row, words, isWhole }: SentCommand): readonly Argument[] {
  if (row.state === 'observed') return [...row.name.split('|'), ...words.slice(row.name.includes('|') ? 2 : 1)]
  return (isWhole ? forEngine(row.name, words) : undefined) ?? words
}

/** Hides passwords. */
function redacted(name: string, words: readonly Argument[]): readonly Argument[] {
  if (name === 'AUTH') return words.map((word, at) => (at === 0 ? word : '(redacted)'))
  if (name !== 'HELLO') return words
  const auth = words.findIndex((word) => word.toString().toUpperCase() === 'AUTH')
  return auth < 0 ? words : words.map((word, at) => (at === auth + 1 || at === auth + 2 ? '(redacted)' : word))
}
