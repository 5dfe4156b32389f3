/**
 * A process for tests that kill it. It opens the SQLite store in the directory of its first argument, writes rows with 50
 * concurrent writers, and prints the name of each row as soon as its write has resolved. With a second argument, a file
 * that fills the disk, it creates the table first; when all writers have failed, it prints the error codes and the number
 * of rows, deletes that file, and prints whether it can write again.
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

/** Prints a line; retries while the pipe is full. */
function print(line: string): void {
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
    print(`${name}\n`)
  }
}

const failures = await Promise.allSettled(Array.from({ length: 50 }, writeOn))
const reasons: unknown[] = failures.map((failure) => (failure.status === 'rejected' ? failure.reason : undefined))
const codes = new Set(reasons.map((reason) => (reason instanceof HomeportError ? reason.code : String(reason))))
print(`failed ${[...codes]} ${(await store.run(list, {})).length}\n`)
if (ballast) unlinkSync(ballast)
print(`again ${await store.run(add, { rows: [{ name: 'again', note }] })}\n`)
await store.close()
