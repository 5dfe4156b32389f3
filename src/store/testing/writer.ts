/**
 * A process for tests that end it harshly: opens the SQLite store in the directory of its first argument, writes rows
 * 50 at once, and prints the name of each as soon as its write has resolved. With a second argument, a file that only
 * takes up room, it makes the table first; when all writers have failed it prints with what and how many rows it
 * finds, deletes that file, and prints whether it can write again.
 */
import { unlinkSync, writeSync } from 'node:fs'
import { HomeportError } from '../../contract/errors/errors.js'
import { openStore } from '../open.js'
import { add, install, list, PROBE_MODULE } from './probe.js'

const [dataDir = '', ballast] = process.argv.slice(2)
const note = 'x'.repeat(2_000)
const store = await openStore({ location: 'sqlite', dataDir, modules: [PROBE_MODULE], onFailure: () => undefined })
if (ballast) await store.run(install, {})
let made = 0

/** Says a line; whoever listens may be slow, and the pipe full. */
function say(line: string): void {
  for (;;) {
    try {
      writeSync(1, line)
      return
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
    }
  }
}

async function writeOn(): Promise<void> {
  for (;;) {
    const name = `${process.pid}-${made++}`
    await store.run(add, { rows: [{ name, note }] })
    say(`${name}\n`)
  }
}

const failures = await Promise.allSettled(Array.from({ length: 50 }, writeOn))
const reasons: unknown[] = failures.map((failure) => (failure.status === 'rejected' ? failure.reason : undefined))
const codes = new Set(reasons.map((reason) => (reason instanceof HomeportError ? reason.code : String(reason))))
say(`failed ${[...codes]} ${(await store.run(list, {})).length}\n`)
if (ballast) unlinkSync(ballast)
say(`again ${await store.run(add, { rows: [{ name: 'again', note }] })}\n`)
await store.close()
