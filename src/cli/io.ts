import { clientVariablesOfProcess } from '../config/index.js'

/** Where a command writes: results to `out`, everything else to `err`. */
export interface Io {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Writes a binary result. */
  readonly bytes?: (bytes: Uint8Array) => void
  /** The terminal and the standard input. Absent: there is no terminal and no input. */
  readonly terminal?: Terminal
}

/** The terminal of a command. */
export interface Terminal {
  /** stdout is a terminal: results may have colours and are cut to the width. */
  readonly out: boolean
  /** stderr is a terminal: progress may be a moving bar. */
  readonly err: boolean
  /** Questions can be asked on the terminal. */
  readonly asks: boolean
  readonly noColor: boolean
  /** Width in characters. */
  readonly columns: () => number
  readonly input: NodeJS.ReadStream
}

const DEFAULT_COLUMNS = 80

/** The streams of this process. */
export const processIo: Io = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  bytes: (bytes) => void process.stdout.write(bytes),
  terminal: {
    out: process.stdout.isTTY === true,
    err: process.stderr.isTTY === true,
    asks: process.stdin.isTTY === true && process.stderr.isTTY === true,
    noColor: clientVariablesOfProcess().noColor,
    columns: () => process.stdout.columns || DEFAULT_COLUMNS,
    get input() {
      return process.stdin
    },
  },
}
