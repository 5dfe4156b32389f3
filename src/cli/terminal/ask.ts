import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { codeOf } from '../../base/index.js'
import { misused } from '../errors.js'
import type { Io, Terminal } from '../io.js'

/** How a destructive action is confirmed. */
export interface Confirmation {
  /** The question, which says what will happen. */
  readonly question: string
  /** What must be typed; absent: `y` or `yes`. */
  readonly typed?: string
  /** `--yes` was given. */
  readonly isGiven: boolean
}

/**
 * Asks for confirmation of a destructive action.
 * @throws HomeportError `cli_misused` when the answer is no, or when there is no terminal and `--yes` is missing.
 */
export async function confirm(io: Io, { question, typed, isGiven }: Confirmation): Promise<void> {
  if (isGiven) return
  if (!io.terminal?.asks)
    throw misused(`${question} There is no terminal to ask on: pass --yes to confirm. Nothing was changed.`)
  const hint = typed === undefined ? '[y/N]' : `Type ${typed} to continue:`
  const answer = (await ask(io.terminal, `${question} ${hint} `)).trim()
  const isYes = typed === undefined ? /^y(es)?$/i.test(answer) : answer === typed
  if (!isYes) throw misused('Not confirmed. Nothing was changed.')
}

/** Asks for a line of text. */
export async function ask(terminal: Terminal, question: string): Promise<string> {
  return answerOf(createInterface({ input: terminal.input, output: process.stderr }), question)
}

/** Reads one line. @throws HomeportError `cli_misused` for Ctrl-C and Ctrl-D. */
async function answerOf(lines: Interface, question: string): Promise<string> {
  try {
    return await lines.question(question)
  } catch (error) {
    throw codeOf(error) === 'ABORT_ERR' ? misused('Not answered. Nothing was changed.') : error
  } finally {
    lines.close()
  }
}

/** Asks for a secret without echo. */
export async function askSecret(terminal: Terminal, question: string): Promise<string> {
  process.stderr.write(question)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  try {
    return await answerOf(createInterface({ input: terminal.input, output: silent, terminal: true }), '')
  } finally {
    process.stderr.write('\n')
  }
}

/** Reads the whole standard input. */
export async function readInput(io: Io): Promise<Buffer> {
  if (!io.terminal) return Buffer.alloc(0)
  const chunks: Buffer[] = []
  for await (const chunk of io.terminal.input) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}
