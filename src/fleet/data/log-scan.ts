/**
 * Parses a file of commands like an engine, without executing any, to find how far it can be read. Only used for a log
 * that an engine refused.
 */
import { open } from 'node:fs/promises'

/**
 * How far a file of commands can be read. `bytes` is the end of the last whole command or transaction.
 * - `whole`: to its end.
 * - `cut`: then follows the beginning of a command whose rest is missing.
 * - `damaged`: then follows no command.
 */
export interface LogScan {
  readonly kind: 'whole' | 'cut' | 'damaged'
  readonly bytes: number
  readonly size: number
}

const CHUNK_BYTES = 256 * 1024
const MAX_LINE_BYTES = 1_024
const LF = 10
const [ARRAY, BULK, NOTE] = ['*', '$', '#'] as const
const MAX_WORD_BYTES = 'MULTI'.length

/** What the scanner expects next. */
type Expecting =
  | { readonly kind: 'command' }
  | { readonly kind: 'argument' }
  | { readonly kind: 'payload'; bytesLeft: number }

/** Incremental parser of a file of commands. */
class Scanner {
  #expecting: Expecting = { kind: 'command' }
  #line = ''
  #argumentsLeft = 0
  #isFirstOfOne = false
  #word = ''
  #at = 0
  #wholeUpTo = 0
  #inTransaction = false
  #isDamaged = false

  /** @returns false when the rest need not be read. */
  feed(chunk: Buffer): boolean {
    for (let from = 0; from < chunk.length && !this.#isDamaged; ) {
      from = this.#expecting.kind === 'payload' ? this.#skip(this.#expecting, chunk, from) : this.#readLine(chunk, from)
    }
    return !this.#isDamaged
  }

  result(size: number): LogScan {
    const bytes = this.#wholeUpTo
    if (this.#isDamaged) return { kind: 'damaged', bytes, size }
    return { kind: bytes === size ? 'whole' : 'cut', bytes, size }
  }

  #skip(payload: { bytesLeft: number }, chunk: Buffer, from: number): number {
    const taken = Math.min(payload.bytesLeft, chunk.length - from)
    if (this.#isFirstOfOne && this.#word.length < MAX_WORD_BYTES) {
      this.#word += chunk.toString('latin1', from, from + Math.min(taken, MAX_WORD_BYTES - this.#word.length))
    }
    payload.bytesLeft -= taken
    this.#at += taken
    if (payload.bytesLeft === 0) this.#endArgument()
    return from + taken
  }

  #readLine(chunk: Buffer, from: number): number {
    const end = chunk.indexOf(LF, from)
    const upTo = end < 0 ? chunk.length : end + 1
    this.#line += chunk.toString('latin1', from, Math.min(upTo, from + MAX_LINE_BYTES))
    this.#at += upTo - from
    if (this.#line.length > MAX_LINE_BYTES) this.#isDamaged = true
    else if (end >= 0) this.#takeLine()
    return upTo
  }

  #takeLine(): void {
    const line = this.#line
    this.#line = ''
    const count = Number.parseInt(line.slice(1), 10)
    if (this.#expecting.kind === 'command') {
      if (line[0] === NOTE) this.#endCommand()
      else if (line[0] === ARRAY && count >= 1) this.#beginCommand(count)
      else this.#isDamaged = true
    } else if (line[0] === BULK && count >= 0) this.#expecting = { kind: 'payload', bytesLeft: count + 2 }
    else this.#isDamaged = true
  }

  #beginCommand(count: number): void {
    this.#argumentsLeft = count
    this.#isFirstOfOne = count === 1
    this.#word = ''
    this.#expecting = { kind: 'argument' }
  }

  #endArgument(): void {
    if (--this.#argumentsLeft > 0) {
      this.#expecting = { kind: 'argument' }
      return
    }
    const word = this.#isFirstOfOne ? this.#word.trim().toUpperCase() : ''
    if (word === 'MULTI') this.#inTransaction = true
    if (word === 'EXEC') this.#inTransaction = false
    this.#endCommand()
  }

  #endCommand(): void {
    this.#expecting = { kind: 'command' }
    if (!this.#inTransaction) this.#wholeUpTo = this.#at
  }
}

/** Scans a file of commands, chunk by chunk with asynchronous reads. */
export async function scanLog(path: string): Promise<LogScan> {
  const scanner = new Scanner()
  const file = await open(path)
  try {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    let size = 0
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, null)
      size += bytesRead
      if (bytesRead === 0) return scanner.result(size)
      if (!scanner.feed(chunk.subarray(0, bytesRead))) return scanner.result((await file.stat()).size)
    }
  } finally {
    await file.close()
  }
}
