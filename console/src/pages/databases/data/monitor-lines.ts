/** Reads the lines of MONITOR from server-sent events, filters them, and keeps the newest. Dropped lines are counted. */

/** One command that the database executed. */
export interface MonitoredCommand {
  readonly id: number
  /** Unix milliseconds. */
  readonly atMs: number
  /** The client's address, or `lua` for a command of a script. */
  readonly source: string
  /** The command with its arguments in quotes, cut to `MAX_COMMAND_LENGTH`. */
  readonly text: string
}

/** Characters of a command that are kept. */
export const MAX_COMMAND_LENGTH = 1_000
/** Longer lines are cut while they are received: a command may have megabytes of arguments. */
const MAX_OPEN = 64 * 1_024
const LINE = /^(\d+)\.(\d{3})\d* \[\d+ (\S+)\] (.*)$/s

/** The counts of a profile. */
export interface ProfileCounts {
  readonly seen: number
  /** Commands that match the filter. */
  readonly matched: number
  /** Matching commands that were dropped for newer ones. */
  readonly dropped: number
  /** Matching commands that were too long and are shown in part. */
  readonly cut: number
}

/** Reads the stream of MONITOR, and keeps the newest commands that match a filter. */
export class Profile {
  readonly #filter: string
  readonly #most: number
  readonly #decoder = new TextDecoder()
  #open = ''
  #isOpenCut = false
  #kept: MonitoredCommand[] = []
  #seen = 0
  #matched = 0
  #dropped = 0
  #cut = 0

  /** @param filter part of a command or address, ignoring case; empty: every command. */
  constructor(filter: string, most: number) {
    this.#filter = filter.trim().toLowerCase()
    this.#most = most
  }

  get counts(): ProfileCounts {
    return { seen: this.#seen, matched: this.#matched, dropped: this.#dropped, cut: this.#cut }
  }

  /** The newest commands, oldest first. */
  commands(): readonly MonitoredCommand[] {
    return this.#kept.slice(-this.#most)
  }

  /** Reads the next bytes of the stream. */
  take(chunk: Uint8Array): void {
    const lines = this.#decoder.decode(chunk, { stream: true }).split('\n')
    for (const [index, text] of lines.entries()) {
      this.#extend(text)
      if (index < lines.length - 1) this.#end()
    }
  }

  #extend(text: string): void {
    this.#open += text
    if (this.#open.length <= MAX_OPEN) return
    this.#open = this.#open.slice(0, MAX_OPEN)
    this.#isOpenCut = true
  }

  #end(): void {
    const line = this.#open
    const wasCut = this.#isOpenCut
    this.#open = ''
    this.#isOpenCut = false
    if (line.startsWith('data: ')) this.#note(line.slice('data: '.length), wasCut)
  }

  #note(line: string, wasCut: boolean): void {
    const [, seconds, ms, source = '', text = ''] = LINE.exec(line) ?? []
    if (seconds === undefined) return
    this.#seen++
    if (!`${source} ${text}`.toLowerCase().includes(this.#filter)) return
    this.#matched++
    if (wasCut || text.length > MAX_COMMAND_LENGTH) this.#cut++
    const atMs = Number(seconds) * 1_000 + Number(ms)
    this.#kept.push({ id: this.#seen, atMs, source, text: text.slice(0, MAX_COMMAND_LENGTH) })
    // Dropping half of the lines at once is cheaper than shifting all of them for each new line.
    if (this.#matched - this.#dropped <= this.#most) return
    this.#dropped++
    if (this.#kept.length >= 2 * this.#most) this.#kept = this.#kept.slice(-this.#most)
  }
}
