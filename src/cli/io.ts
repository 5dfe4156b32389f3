/** Where a command writes. Results go to `out`, everything said about them to `err`. */
export interface Io {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

/** The terminal, or whatever stands in its place. */
export const processIo: Io = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
}
