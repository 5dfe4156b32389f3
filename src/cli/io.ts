import { clientVariablesOfProcess } from '../config/index.js'

/** Where a command writes. Results go to `out`, everything said about them to `err`. */
export interface Io {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Writes a result that is no text. */
  readonly bytes?: (bytes: Uint8Array) => void
  /** What stands behind them; absent: no terminal anywhere, and nothing to read. */
  readonly terminal?: Terminal
}

/** The terminal of a command, where there is one. */
export interface Terminal {
  /** Results are read by a person: they may be coloured and are cut to the width. */
  readonly out: boolean
  /** What is said about the work is read by a person: progress may move. */
  readonly err: boolean
  /** A person can be asked. */
  readonly asks: boolean
  readonly noColor: boolean
  /** Characters of a line. */
  readonly columns: () => number
  readonly input: NodeJS.ReadStream
}

const WIDTH_OF_PAPER = 80

/** The terminal, or whatever stands in its place. */
export const processIo: Io = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  bytes: (bytes) => void process.stdout.write(bytes),
  terminal: {
    out: process.stdout.isTTY === true,
    err: process.stderr.isTTY === true,
    asks: process.stdin.isTTY === true && process.stderr.isTTY === true,
    noColor: clientVariablesOfProcess().noColor,
    columns: () => process.stdout.columns || WIDTH_OF_PAPER,
    get input() {
      return process.stdin
    },
  },
}
